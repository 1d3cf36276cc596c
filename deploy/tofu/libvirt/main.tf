# Machines on one host with libvirt: a private cloud of one's own. A place has no meaning here, all are on the provider's
# host, its uri ("qemu:///system" for this machine).

terraform {
  required_version = ">= 1.5"
  required_providers {
    libvirt = {
      source  = "dmacvicar/libvirt"
      version = ">= 0.7.6, < 0.9.0" # 0.9 has other resources
    }
  }
}

variable "image" {
  description = "The file, or the address, of a disk image with cloud-init, as qcow2. Debian's genericcloud does not see the disk that cloud-init reads."
  type        = string
  default     = "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-generic-amd64.qcow2"
}

variable "pool" {
  description = "The storage pool that disks are in."
  type        = string
  default     = "default"
}

variable "cidr" {
  description = "The addresses of the machines."
  type        = string
  default     = "10.50.0.0/24"
}

variable "mode" {
  description = "How the network reaches others: nat, route, open or none, as libvirt has them."
  type        = string
  default     = "nat"
}

variable "accelerator" {
  description = "What runs the machines: kvm, or qemu, which emulates the processor and is ten times slower."
  type        = string
  default     = "kvm"
}

locals {
  flavor = "2x4096" # processors x MiB
  first  = 10       # the first address that is given, of the network's
  order  = { for i, name in keys(local.machines) : name => i }
  made = { for name, vm in libvirt_domain.machine : name => {
    id      = vm.id
    public  = vm.network_interface[0].addresses[0]
    private = vm.network_interface[0].addresses[0]
  } }
}

resource "libvirt_network" "lab" {
  name      = var.name
  mode      = var.mode
  addresses = [var.cidr]
  dhcp {
    enabled = true
  }
}

resource "libvirt_volume" "image" {
  name   = "${var.name}-image"
  pool   = var.pool
  source = var.image
  format = "qcow2"
}

resource "libvirt_volume" "machine" {
  for_each       = local.machines
  name           = each.key
  pool           = var.pool
  base_volume_id = libvirt_volume.image.id
  size           = coalesce(var.disk, 40) * 1024 * 1024 * 1024
}

resource "libvirt_cloudinit_disk" "machine" {
  for_each  = local.machines
  name      = "${each.key}-init.iso"
  pool      = var.pool
  user_data = local.user_data[each.key]
  meta_data = jsonencode({ instance-id = each.key, local-hostname = each.key })
}

resource "libvirt_domain" "machine" {
  for_each  = local.machines
  name      = each.key
  type      = var.accelerator
  vcpu      = tonumber(split("x", each.value.flavor)[0])
  memory    = tonumber(split("x", each.value.flavor)[1])
  cloudinit = libvirt_cloudinit_disk.machine[each.key].id

  cpu {
    mode = var.accelerator == "kvm" ? "host-passthrough" : "maximum"
  }

  disk {
    volume_id = libvirt_volume.machine[each.key].id
  }

  network_interface {
    network_id     = libvirt_network.lab.id
    addresses      = [cidrhost(var.cidr, local.first + local.order[each.key])]
    wait_for_lease = true
  }

  console { # which Debian's cloud images want
    type        = "pty"
    target_type = "serial"
    target_port = "0"
  }
}
