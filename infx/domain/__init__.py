"""The words of infx as types. Imports nothing else of infx."""
