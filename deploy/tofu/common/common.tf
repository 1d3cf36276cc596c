# What the modules of all clouds share: their variables, their machines, their output. Every module holds a link to this
# file, and adds local.flavor, the flavor of machines of which nobody says it, and local.made.

variable "name" {
  description = "What names of all that is made begin with."
  type        = string
  default     = "skerry"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,20}$", var.name))
    error_message = "The name begins with a small letter, and has small letters, digits and hyphens, 21 at most."
  }
}

variable "sites" {
  description = "The sites of the lab by their names in the topology: where each is (place), how many machines it has, and of which flavor."
  type = map(object({
    place    = optional(string)
    machines = optional(number, 1)
    flavor   = optional(string)
  }))
  validation {
    condition     = length(var.sites) > 0 && alltrue([for s in values(var.sites) : s.machines >= 1 && floor(s.machines) == s.machines])
    error_message = "There is at least one site, and each has at least one machine."
  }
  validation {
    condition     = alltrue([for site in keys(var.sites) : can(regex("^[A-Za-z][A-Za-z0-9 _-]{0,30}$", site))])
    error_message = "A site's name begins with a letter, and has letters, digits, spaces, hyphens and underscores, 31 at most."
  }
}

variable "place" {
  description = "Where sites are of which nobody says it; the provider's own where this is left out."
  type        = string
  default     = null
}

variable "flavor" {
  description = "What machines are of; two processors and 4 GiB where it is left out."
  type        = string
  default     = null
}

variable "disk" {
  description = "The disk of each machine in GiB; 40 where it is left out, on OpenStack the disk of the flavor."
  type        = number
  default     = null
}

variable "ssh_key" {
  description = "The file of the public key that may log in. The private one is beside it, without .pub."
  type        = string
  default     = "~/.ssh/id_ed25519.pub"
}

variable "ssh_from" {
  description = "The networks that SSH is open to."
  type        = list(string)
  default     = ["0.0.0.0/0"]
}

variable "machines_from" {
  description = "The networks that WireGuard's ports are open to: those of the other machines."
  type        = list(string)
  default     = ["0.0.0.0/0"]
}

variable "between" {
  description = "The addresses by which machines reach one another: public, or private where all are in one network."
  type        = string
  default     = "public"
  validation {
    condition     = contains(["public", "private"], var.between)
    error_message = "It is public or private."
  }
}

variable "packages" {
  description = "What is installed on each machine when it starts for the first time."
  type        = list(string)
  default     = ["chrony"] # a clock that is right
}

locals {
  # All machines by their names. Regular expressions between slashes are OpenTofu's way to tell them from texts.
  machines = merge([for site, s in var.sites : {
    for n in range(1, s.machines + 1) :
    join("-", concat([var.name, trim(lower(replace(site, "/[^A-Za-z0-9]+/", "-")), "-")], s.machines > 1 ? [n] : [])) => {
      site   = site
      place  = try(coalesce(s.place, var.place), "") # "" is the provider's own
      flavor = try(coalesce(s.flavor, var.flavor), local.flavor)
    }
  }]...)
  places = toset([for m in local.machines : m.place])

  public_key = trimspace(file(pathexpand(var.ssh_key)))
  user       = "skerry"
  user_data = { for name, m in local.machines : name => templatefile("${path.module}/../common/cloud-init.yaml", {
    name = name, user = local.user, key = local.public_key, packages = var.packages
  }) }

  # Labs take one UDP port each of these (docs/machines.md).
  first_port = 51820
  last_port  = 51899
}

# What `skerry machines from-tofu` reads: entries of a machines file. Addresses are given again to later machines, so
# that SSH knows a machine by what the cloud calls it (id), which is never given again.
output "machines" {
  description = "Entries of a machines file, for skerry machines from-tofu."
  value = [for name, m in local.machines : {
    name = name
    site = m.site
    sudo = true
    addr = local.made[name][var.between]
    ssh = {
      host     = local.made[name].public
      user     = local.user
      identity = trimsuffix(startswith(var.ssh_key, "~") ? var.ssh_key : abspath(var.ssh_key), ".pub")
      options  = ["StrictHostKeyChecking=accept-new", "HostKeyAlias=${name}-${local.made[name].id}"]
    }
  }]
}
