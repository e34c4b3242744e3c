"""What Python source says: read a file once, compare two, resolve names."""
