# `tofu test` runs this without an account: nothing is made, the provider only says what its resources are.

mock_provider "aws" {
  mock_resource "aws_instance" {
    defaults = { public_ip = "203.0.113.1", private_ip = "10.50.0.7" }
  }
}

variables {
  ssh_key  = "../common/tests/key.pub"
  ssh_from = ["198.51.100.0/24", "192.0.2.7/32"]
  sites    = { Sydney = { place = "ap-southeast-2", machines = 2 }, Pune = { place = "ap-south-1", flavor = "c6i.xlarge" } }
}

run "two_regions" {
  assert {
    condition     = [for m in output.machines : [m.name, m.site, m.addr]] == [["skerry-pune", "Pune", "203.0.113.1"], ["skerry-sydney-1", "Sydney", "203.0.113.1"], ["skerry-sydney-2", "Sydney", "203.0.113.1"]]
    error_message = jsonencode(output.machines)
  }
  assert {
    condition     = length(aws_vpc.lab) == 2 && aws_instance.machine["skerry-pune"].region == "ap-south-1" && aws_instance.machine["skerry-pune"].instance_type == "c6i.xlarge"
    error_message = "a network a region, and the flavor of the site"
  }
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.ssh) == 4 && length(aws_vpc_security_group_ingress_rule.wireguard) == 2
    error_message = "SSH from two networks and WireGuard from everywhere, in two regions"
  }
}

run "private_addresses" {
  variables {
    between = "private"
    sites   = { Sydney = {} }
  }
  assert {
    condition     = output.machines[0].addr == "10.50.0.7" && output.machines[0].ssh.host == "203.0.113.1"
    error_message = jsonencode(output.machines)
  }
}
