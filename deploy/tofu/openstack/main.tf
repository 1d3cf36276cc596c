# Machines on an OpenStack cloud. A place is an availability zone; the region, like all else about the cloud, is the
# provider's (clouds.yaml and OS_CLOUD, or the variables that `openstack` takes).

terraform {
  required_version = ">= 1.5"
  required_providers {
    openstack = {
      source  = "terraform-provider-openstack/openstack"
      version = ">= 1.54.1, < 4.0"
    }
  }
}

variable "image" {
  description = "The name of an image with cloud-init."
  type        = string
  default     = "debian-12"
}

variable "external" {
  description = "The network that floating IP addresses are from. Left out, machines are reached by the addresses that they have on their own network."
  type        = string
  default     = null
}

variable "network" {
  description = "A network that is there and gives machines their addresses. Left out, one is made."
  type        = string
  default     = null
}

variable "cidr" {
  description = "The addresses of the network that is made."
  type        = string
  default     = "10.50.0.0/24"
}

variable "dns" {
  description = "Name servers of the network that is made; the cloud's own where this is empty."
  type        = list(string)
  default     = []
}

locals {
  flavor = "m1.medium" # in DevStack's list 2 processors, 4 GiB, 40 GB
  own    = var.network == null
  floats = var.external != null
  made = { for name, vm in openstack_compute_instance_v2.machine : name => {
    id      = vm.id
    private = openstack_networking_port_v2.machine[name].all_fixed_ips[0]
    public  = local.floats ? openstack_networking_floatingip_v2.machine[name].address : openstack_networking_port_v2.machine[name].all_fixed_ips[0]
  } }
}

data "openstack_images_image_v2" "machine" {
  name        = var.image
  most_recent = true
}

data "openstack_networking_network_v2" "there" {
  count = local.own ? 0 : 1
  name  = var.network
}

data "openstack_networking_network_v2" "external" {
  count = local.floats ? 1 : 0
  name  = var.external
}

resource "openstack_networking_network_v2" "lab" {
  count = local.own ? 1 : 0
  name  = var.name
}

resource "openstack_networking_subnet_v2" "lab" {
  count           = local.own ? 1 : 0
  name            = var.name
  network_id      = openstack_networking_network_v2.lab[0].id
  cidr            = var.cidr
  dns_nameservers = var.dns
}

resource "openstack_networking_router_v2" "lab" {
  count               = local.own && local.floats ? 1 : 0
  name                = var.name
  external_network_id = data.openstack_networking_network_v2.external[0].id
}

resource "openstack_networking_router_interface_v2" "lab" {
  count     = local.own && local.floats ? 1 : 0
  router_id = openstack_networking_router_v2.lab[0].id
  subnet_id = openstack_networking_subnet_v2.lab[0].id
}

resource "openstack_networking_secgroup_v2" "lab" {
  name        = var.name
  description = "SSH, and WireGuard between the machines of labs"
}

resource "openstack_networking_secgroup_rule_v2" "ssh" {
  for_each          = toset(var.ssh_from)
  security_group_id = openstack_networking_secgroup_v2.lab.id
  direction         = "ingress"
  ethertype         = "IPv4"
  protocol          = "tcp"
  port_range_min    = 22
  port_range_max    = 22
  remote_ip_prefix  = each.value
}

resource "openstack_networking_secgroup_rule_v2" "wireguard" {
  for_each          = toset(var.machines_from)
  security_group_id = openstack_networking_secgroup_v2.lab.id
  direction         = "ingress"
  ethertype         = "IPv4"
  protocol          = "udp"
  port_range_min    = local.first_port
  port_range_max    = local.last_port
  remote_ip_prefix  = each.value
}

resource "openstack_compute_keypair_v2" "lab" {
  name       = var.name
  public_key = local.public_key
}

resource "openstack_networking_port_v2" "machine" {
  for_each           = local.machines
  name               = each.key
  network_id         = local.own ? openstack_networking_network_v2.lab[0].id : data.openstack_networking_network_v2.there[0].id
  security_group_ids = [openstack_networking_secgroup_v2.lab.id]
  depends_on         = [openstack_networking_subnet_v2.lab] # or the port has no address
}

resource "openstack_compute_instance_v2" "machine" {
  for_each          = local.machines
  name              = each.key
  flavor_name       = each.value.flavor
  image_id          = var.disk == null ? data.openstack_images_image_v2.machine.id : null
  key_pair          = openstack_compute_keypair_v2.lab.name
  user_data         = local.user_data[each.key]
  availability_zone = each.value.place != "" ? each.value.place : null

  network {
    port = openstack_networking_port_v2.machine[each.key].id
  }

  dynamic "block_device" {
    for_each = var.disk[*] # none for null
    content {
      uuid                  = data.openstack_images_image_v2.machine.id
      source_type           = "image"
      destination_type      = "volume"
      volume_size           = block_device.value
      boot_index            = 0
      delete_on_termination = true
    }
  }
}

resource "openstack_networking_floatingip_v2" "machine" {
  for_each   = local.floats ? local.machines : {}
  pool       = var.external
  port_id    = openstack_networking_port_v2.machine[each.key].id
  depends_on = [openstack_networking_router_interface_v2.lab] # or the network is not reached from outside
}
