"""Placement: where an array's pages come from, when they become real, and what was granted."""

from firsttouch.placement.arrays import collapse, migrate, receipt, receipts, touch
from firsttouch.placement.nodes import Node, Topology, current_node, highest_node, run_on, topology
from firsttouch.placement.pages import numa
from firsttouch.placement.policies import Policy
from firsttouch.placement.results import Collapsed, Migrated, Receipt, ReceiptSum, Touched

__all__ = [
    "Collapsed",
    "Migrated",
    "Node",
    "Policy",
    "Receipt",
    "ReceiptSum",
    "Topology",
    "Touched",
    "collapse",
    "current_node",
    "highest_node",
    "migrate",
    "numa",
    "receipt",
    "receipts",
    "run_on",
    "topology",
    "touch",
]
