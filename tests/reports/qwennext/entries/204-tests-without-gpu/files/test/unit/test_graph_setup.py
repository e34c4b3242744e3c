def test_graph_setup():
    assert True
