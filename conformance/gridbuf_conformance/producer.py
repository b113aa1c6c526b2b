"""What a producer is: the contract of `plan.producer`, under the name that producers import."""

from .plan.producer import Capabilities, Producer, Unsupported, python_view

__all__ = ["Capabilities", "Producer", "Unsupported", "python_view"]
