# `tofu test` runs this without an account: nothing is made, the provider only says what its resources are.

mock_provider "google" {}

variables {
  ssh_key  = "../common/tests/key.pub"
  ssh_from = ["198.51.100.0/24"]
  sites    = { Sydney = { place = "australia-southeast1-b", machines = 2 }, Pune = { place = "asia-south1-a", flavor = "n2-standard-4" } }
}

run "two_zones" {
  assert {
    condition     = [for m in output.machines : m.name] == ["skerry-pune", "skerry-sydney-1", "skerry-sydney-2"]
    error_message = jsonencode(output.machines)
  }
  assert {
    condition     = google_compute_instance.machine["skerry-pune"].zone == "asia-south1-a" && google_compute_instance.machine["skerry-pune"].machine_type == "n2-standard-4"
    error_message = "the zone and the flavor of the site"
  }
  assert {
    condition     = startswith(google_compute_instance.machine["skerry-pune"].metadata.user-data, "#cloud-config\nhostname: skerry-pune\n")
    error_message = "cloud-init is told of its machine"
  }
}
