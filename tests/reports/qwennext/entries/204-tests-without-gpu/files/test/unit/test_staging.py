def test_staging():
    assert True
