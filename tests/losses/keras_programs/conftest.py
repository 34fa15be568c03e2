"""These files are run by test_keras, once for each backend, in a process of its own."""

collect_ignore_glob = ["*.py"]
