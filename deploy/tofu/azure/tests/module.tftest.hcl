# `tofu test` runs this without an account: nothing is made, the provider only says what its resources are.

mock_provider "azurerm" {
  mock_resource "azurerm_public_ip" {
    defaults = { ip_address = "203.0.113.1" }
  }
}

variables {
  ssh_key = "../common/tests/key.pub"
  sites   = { Sydney = { machines = 2 }, Pune = { place = "centralindia", flavor = "Standard_F4s_v2" } }
}

run "two_locations" {
  assert {
    condition     = [for m in output.machines : [m.name, m.site, m.addr]] == [["skerry-pune", "Pune", "203.0.113.1"], ["skerry-sydney-1", "Sydney", "203.0.113.1"], ["skerry-sydney-2", "Sydney", "203.0.113.1"]]
    error_message = jsonencode(output.machines)
  }
  assert {
    condition     = azurerm_linux_virtual_machine.machine["skerry-pune"].location == "centralindia" && azurerm_linux_virtual_machine.machine["skerry-sydney-1"].location == "australiaeast"
    error_message = "the location of the site, and one where nothing says it"
  }
  assert {
    condition     = length(azurerm_virtual_network.lab) == 2 && azurerm_linux_virtual_machine.machine["skerry-pune"].size == "Standard_F4s_v2"
    error_message = "a network a location, and the flavor of the site"
  }
}
