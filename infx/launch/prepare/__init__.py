"""What a cluster's jobs need where nodes have an old Python and no network."""

from infx.launch.prepare.site import Prepared, check_image, prepare, prepared_python

__all__ = ["Prepared", "check_image", "prepare", "prepared_python"]
