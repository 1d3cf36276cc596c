# Machines on AWS. A place is a region ("ap-southeast-2"), and each place gets a network of its own.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.0" # the first whose resources have a region each
    }
  }
}

variable "image" {
  description = "The name of an image with cloud-init, * for any text; the newest of that name is taken."
  type        = string
  default     = "debian-12-amd64-*"
}

variable "image_owner" {
  description = "The account that the image is of; Debian's where it is left out."
  type        = string
  default     = "136693071363"
}

variable "cidr" {
  description = "The addresses of each place's network."
  type        = string
  default     = "10.50.0.0/24"
}

locals {
  flavor = "c6i.large" # 2 processors, 4 GiB, no credits
  region = { for p in local.places : p => p != "" ? p : null }
  made = { for name, vm in aws_instance.machine : name => {
    id      = vm.id
    public  = vm.public_ip
    private = vm.private_ip
  } }
}

data "aws_ami" "machine" {
  for_each    = local.places
  region      = local.region[each.key]
  owners      = [var.image_owner]
  most_recent = true
  filter {
    name   = "name"
    values = [var.image]
  }
}

resource "aws_vpc" "lab" {
  for_each   = local.places
  region     = local.region[each.key]
  cidr_block = var.cidr
  tags       = { Name = var.name }
}

resource "aws_subnet" "lab" {
  for_each                = local.places
  region                  = local.region[each.key]
  vpc_id                  = aws_vpc.lab[each.key].id
  cidr_block              = var.cidr
  map_public_ip_on_launch = true
  tags                    = { Name = var.name }
}

resource "aws_internet_gateway" "lab" {
  for_each = local.places
  region   = local.region[each.key]
  vpc_id   = aws_vpc.lab[each.key].id
  tags     = { Name = var.name }
}

resource "aws_default_route_table" "lab" {
  for_each               = local.places
  region                 = local.region[each.key]
  default_route_table_id = aws_vpc.lab[each.key].default_route_table_id
  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.lab[each.key].id
  }
  tags = { Name = var.name }
}

resource "aws_security_group" "lab" {
  for_each    = local.places
  region      = local.region[each.key]
  name        = var.name
  description = "SSH, and WireGuard between the machines of labs"
  vpc_id      = aws_vpc.lab[each.key].id
}

resource "aws_vpc_security_group_ingress_rule" "ssh" {
  for_each          = { for pair in setproduct(local.places, var.ssh_from) : join(" ", pair) => { place = pair[0], from = pair[1] } }
  region            = local.region[each.value.place]
  security_group_id = aws_security_group.lab[each.value.place].id
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22
  cidr_ipv4         = each.value.from
}

resource "aws_vpc_security_group_ingress_rule" "wireguard" {
  for_each          = { for pair in setproduct(local.places, var.machines_from) : join(" ", pair) => { place = pair[0], from = pair[1] } }
  region            = local.region[each.value.place]
  security_group_id = aws_security_group.lab[each.value.place].id
  ip_protocol       = "udp"
  from_port         = local.first_port
  to_port           = local.last_port
  cidr_ipv4         = each.value.from
}

resource "aws_vpc_security_group_egress_rule" "all" {
  for_each          = local.places
  region            = local.region[each.key]
  security_group_id = aws_security_group.lab[each.key].id
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_key_pair" "lab" {
  for_each   = local.places
  region     = local.region[each.key]
  key_name   = var.name
  public_key = local.public_key
}

resource "aws_instance" "machine" {
  for_each               = local.machines
  region                 = local.region[each.value.place]
  ami                    = data.aws_ami.machine[each.value.place].id
  instance_type          = each.value.flavor
  key_name               = aws_key_pair.lab[each.value.place].key_name
  subnet_id              = aws_subnet.lab[each.value.place].id
  vpc_security_group_ids = [aws_security_group.lab[each.value.place].id]
  user_data              = local.user_data[each.key]
  tags                   = { Name = each.key }

  root_block_device {
    volume_type = "gp3"
    volume_size = coalesce(var.disk, 40)
  }

  metadata_options {
    http_tokens = "required"
  }

  depends_on = [aws_default_route_table.lab, aws_vpc_security_group_egress_rule.all] # or cloud-init has no way out
}
