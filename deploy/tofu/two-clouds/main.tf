# A lab on two clouds: three machines on a private one (OpenStack), two on AWS in Sydney and Mumbai. The clouds are told as their
# own programs are told: OS_CLOUD and clouds.yaml; AWS_PROFILE, AWS_REGION and ~/.aws.

module "private" {
  source   = "../openstack"
  name     = "private"
  external = "public" # the network of floating IP addresses
  sites    = { Melbourne = {}, Canberra = {}, Singapore = {} }
}

module "aws" {
  source = "../aws"
  name   = "aws"
  sites  = { Sydney = { place = "ap-southeast-2" }, Pune = { place = "ap-south-1" } }
}

output "machines" {
  value = concat(module.private.machines, module.aws.machines)
}
