"""What a machine is called, by what its firmware tells."""

from __future__ import annotations

import pytest

from iolab.core.host import MachineFacts

AZURE = "7783-7084-3265-9085-8269-3286-77"


@pytest.mark.parametrize(
    ("vendor", "product", "asset_tag", "title"),
    [
        ("Amazon EC2", "i4i.2xlarge", "Amazon EC2", "Amazon EC2 i4i.2xlarge"),
        ("Google", "Google Compute Engine", None, "Google Compute Engine"),
        ("Alibaba Cloud", "Alibaba Cloud ECS", None, "Alibaba Cloud ECS"),
        ("Microsoft Corporation", "Virtual Machine", AZURE, "Microsoft Azure Virtual Machine"),
        (
            "Microsoft Corporation",
            "Virtual Machine",
            "None",
            "Microsoft Corporation Virtual Machine",
        ),
        ("Dell Inc.", "PowerEdge R750", "A-17", "Dell Inc. PowerEdge R750"),
        ("To Be Filled By O.E.M.", "X570D4U", None, "X570D4U"),
        ("System manufacturer", "System Product Name", None, None),
        (None, None, None, None),
    ],
)
def test_a_machine_is_named_by_cloud_or_maker_and_product(
    vendor: str | None, product: str | None, asset_tag: str | None, title: str | None
) -> None:
    assert MachineFacts(vendor, product, asset_tag).vendor_and_product_text == title
