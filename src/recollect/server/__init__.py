"""The service: what reaches a store from outside the process."""
