"""infx: which server configuration gives which point on the throughput-interactivity frontier?"""

__version__ = "0.1.0"
