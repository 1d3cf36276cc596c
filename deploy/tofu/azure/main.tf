# Machines on Azure. A place is a location ("australiaeast"), and each place gets a network of its own. All of it is in one
# resource group.

terraform {
  required_version = ">= 1.5"
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = ">= 4.0"
    }
  }
}

variable "image" {
  description = "An image with cloud-init: publisher, offer, SKU and version, with colons between."
  type        = string
  default     = "Debian:debian-12:12-gen2:latest"
  validation {
    condition     = length(split(":", var.image)) == 4
    error_message = "It has four parts: PUBLISHER:OFFER:SKU:VERSION."
  }
}

variable "cidr" {
  description = "The addresses of each place's network."
  type        = string
  default     = "10.50.0.0/24"
}

locals {
  flavor   = "Standard_F2s_v2" # 2 processors, 4 GiB, no credits
  location = { for p in local.places : p => p != "" ? p : "australiaeast" }
  image    = split(":", var.image)
  made = { for name, vm in azurerm_linux_virtual_machine.machine : name => {
    id      = vm.virtual_machine_id
    public  = azurerm_public_ip.machine[name].ip_address
    private = vm.private_ip_address
  } }
}

resource "azurerm_resource_group" "lab" {
  name     = var.name
  location = local.location[sort(local.places)[0]]
}

resource "azurerm_virtual_network" "lab" {
  for_each            = local.places
  name                = "${var.name}-${local.location[each.key]}"
  location            = local.location[each.key]
  resource_group_name = azurerm_resource_group.lab.name
  address_space       = [var.cidr]
}

resource "azurerm_subnet" "lab" {
  for_each             = local.places
  name                 = var.name
  resource_group_name  = azurerm_resource_group.lab.name
  virtual_network_name = azurerm_virtual_network.lab[each.key].name
  address_prefixes     = [var.cidr]
}

resource "azurerm_network_security_group" "lab" {
  for_each            = local.places
  name                = "${var.name}-${local.location[each.key]}"
  location            = local.location[each.key]
  resource_group_name = azurerm_resource_group.lab.name

  security_rule {
    name                       = "ssh"
    priority                   = 100
    direction                  = "Inbound"
    access                     = "Allow"
    protocol                   = "Tcp"
    source_port_range          = "*"
    destination_port_range     = "22"
    source_address_prefixes    = var.ssh_from
    destination_address_prefix = "*"
  }

  security_rule {
    name                       = "wireguard"
    priority                   = 110
    direction                  = "Inbound"
    access                     = "Allow"
    protocol                   = "Udp"
    source_port_range          = "*"
    destination_port_range     = "${local.first_port}-${local.last_port}"
    source_address_prefixes    = var.machines_from
    destination_address_prefix = "*"
  }
}

resource "azurerm_subnet_network_security_group_association" "lab" {
  for_each                  = local.places
  subnet_id                 = azurerm_subnet.lab[each.key].id
  network_security_group_id = azurerm_network_security_group.lab[each.key].id
}

resource "azurerm_public_ip" "machine" {
  for_each            = local.machines
  name                = each.key
  location            = local.location[each.value.place]
  resource_group_name = azurerm_resource_group.lab.name
  allocation_method   = "Static"
  sku                 = "Standard"
}

resource "azurerm_network_interface" "machine" {
  for_each            = local.machines
  name                = each.key
  location            = local.location[each.value.place]
  resource_group_name = azurerm_resource_group.lab.name

  ip_configuration {
    name                          = "lab"
    subnet_id                     = azurerm_subnet.lab[each.value.place].id
    private_ip_address_allocation = "Dynamic"
    public_ip_address_id          = azurerm_public_ip.machine[each.key].id
  }
}

resource "azurerm_linux_virtual_machine" "machine" {
  for_each              = local.machines
  name                  = each.key
  location              = local.location[each.value.place]
  resource_group_name   = azurerm_resource_group.lab.name
  size                  = each.value.flavor
  admin_username        = local.user
  network_interface_ids = [azurerm_network_interface.machine[each.key].id]
  custom_data           = base64encode(local.user_data[each.key])

  admin_ssh_key {
    username   = local.user
    public_key = local.public_key
  }

  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "Premium_LRS"
    disk_size_gb         = coalesce(var.disk, 40)
  }

  source_image_reference {
    publisher = local.image[0]
    offer     = local.image[1]
    sku       = local.image[2]
    version   = local.image[3]
  }

  depends_on = [azurerm_subnet_network_security_group_association.lab]
}
