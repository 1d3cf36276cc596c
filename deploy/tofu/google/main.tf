# Machines on Google Cloud. A place is a zone ("australia-southeast1-b"). One network spans all regions.

terraform {
  required_version = ">= 1.5"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.0"
    }
  }
}

variable "image" {
  description = "An image with cloud-init, which Google's images of Ubuntu have and those of Debian have not."
  type        = string
  default     = "ubuntu-os-cloud/ubuntu-2404-lts-amd64"
}

locals {
  flavor = "n2-custom-2-4096" # 2 processors, 4 GiB, no credits
  made = { for name, vm in google_compute_instance.machine : name => {
    id      = vm.instance_id
    public  = vm.network_interface[0].access_config[0].nat_ip
    private = vm.network_interface[0].network_ip
  } }
}

resource "google_compute_network" "lab" {
  name                    = var.name
  auto_create_subnetworks = true
}

resource "google_compute_firewall" "ssh" {
  name          = "${var.name}-ssh"
  network       = google_compute_network.lab.id
  source_ranges = var.ssh_from
  allow {
    protocol = "tcp"
    ports    = ["22"]
  }
}

resource "google_compute_firewall" "wireguard" {
  name          = "${var.name}-wireguard"
  network       = google_compute_network.lab.id
  source_ranges = var.machines_from
  allow {
    protocol = "udp"
    ports    = ["${local.first_port}-${local.last_port}"]
  }
}

resource "google_compute_instance" "machine" {
  for_each     = local.machines
  name         = each.key
  zone         = each.value.place != "" ? each.value.place : null
  machine_type = each.value.flavor

  boot_disk {
    initialize_params {
      image = var.image
      size  = coalesce(var.disk, 40)
      type  = "pd-balanced"
    }
  }

  network_interface {
    network = google_compute_network.lab.id
    access_config {} # a public address
  }

  metadata = {
    user-data              = local.user_data[each.key]
    block-project-ssh-keys = "true"
  }
}
