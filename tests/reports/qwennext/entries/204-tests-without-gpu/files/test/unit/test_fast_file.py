def test_fast_file():
    assert True
