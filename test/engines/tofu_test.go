package engines

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry/internal/machine/inventory"
	"skerry/internal/record"
	"skerry/test/testkit"
)

// modules lists those of deploy/tofu.
const modules = "../../deploy/tofu"

// tofuFolder is the folder that tofu-setup.sh has created.
func tofuFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(testkit.OptIn(t, "SKERRY_TOFU", "a folder with OpenTofu, providers, libvirt and an image, which test/engines/tofu-setup.sh makes in a quarter of an hour"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// configuration is a folder in which OpenTofu applies a module.
type configuration struct {
	t      *testing.T
	dir    string
	folder string // folder with OpenTofu and its providers
	// command runs a program; nil for this machine.
	command func(args ...string) *exec.Cmd
}

// settle makes the folder the only source of providers.
func (c configuration) settle() {
	c.t.Helper()
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror { path = %q }\n}\ndisable_checkpoint = true\n", filepath.Join(c.folder, "providers"))
	if err := os.WriteFile(filepath.Join(c.dir, "tofurc"), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// write writes the configuration, which begins with the provider's settings, if any, and the required key.
func (c configuration) write(provider, module, arguments string) {
	c.t.Helper()
	c.settle()
	text := provider + fmt.Sprintf("module \"lab\" {\n  source  = %q\n  ssh_key = %q\n%s\n}\noutput \"machines\" {\n  value = module.lab.machines\n}\n", module, filepath.Join(c.dir, "key.pub"), arguments)
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(c.dir, "key")).CombinedOutput(); err != nil {
		c.t.Fatalf("creating a key: %v\n%s", err, out)
	}
}

// env is the environment of OpenTofu, and of skerry when it runs OpenTofu.
func (c configuration) env() []string {
	return []string{"TF_CLI_CONFIG_FILE=" + filepath.Join(c.dir, "tofurc"), "PATH=" + filepath.Join(c.folder, "bin") + ":" + os.Getenv("PATH")}
}

// run runs a program with the environment of OpenTofu.
func (c configuration) run(args ...string) (string, error) {
	args = append(append([]string{"env"}, c.env()...), args...)
	cmd := exec.CommandContext(c.t.Context(), args[0], args[1:]...)
	if c.command != nil {
		cmd = c.command(args...)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// tofu runs OpenTofu in the folder, and fails the test if that fails.
func (c configuration) tofu(args ...string) string {
	c.t.Helper()
	out, err := c.run(append([]string{"tofu", "-chdir=" + c.dir}, args...)...)
	if err != nil {
		c.t.Fatalf("tofu %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Modules that cannot be applied here are validated against the schemas of their providers, and tested with OpenTofu's
// mocks of them.
func TestTofuModules(t *testing.T) {
	folder := tofuFolder(t)
	for _, cloud := range []string{"aws", "azure", "google"} {
		t.Run(cloud, func(t *testing.T) {
			all := t.TempDir() // init leaves files that do not belong in the repository
			if out, err := exec.Command("cp", "-a", modules+"/.", all).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			c := configuration{t: t, dir: filepath.Join(all, cloud), folder: folder}
			c.settle()
			c.tofu("init")
			c.tofu("validate")
			t.Log(c.tofu("test"))
		})
	}
}

// FHC's eight machines and their client are created on a simulated OpenStack, found unchanged, listed, and destroyed.
func TestTofuOpenStack(t *testing.T) {
	cloud := newOpenStack(t)
	c := configuration{t: t, dir: t.TempDir(), folder: tofuFolder(t)}
	module, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	sites := []string{"Canberra", "Dubai", "Melbourne", "Pune", "Seoul", "Singapore", "Singapore", "Sydney", "Virginia"}
	given := ""
	for _, s := range slices.Compact(slices.Clone(sites)) {
		given += fmt.Sprintf("    %s = { machines = %d }\n", s, strings.Count(strings.Join(sites, " "), s))
	}
	c.write("", module+"//openstack", "  external = \"public\"\n  place    = \"nova\"\n  sites = {\n"+given+"  }")
	for name, value := range map[string]string{"OS_AUTH_URL": cloud.url + "/identity/v3", "OS_USERNAME": "lab", "OS_PASSWORD": "stand-in", "OS_PROJECT_NAME": "lab", "OS_DOMAIN_NAME": "Default", "OS_REGION_NAME": "one"} {
		t.Setenv(name, value)
	}
	for _, args := range [][]string{{"init"}, {"validate"}, {"plan"}, {"apply", "-auto-approve"}, {"plan", "-detailed-exitcode"}} {
		c.tofu(args...) // the last command fails if it would change anything
	}
	for _, e := range c.env() {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	f, err := inventory.FromTofu(t.Context(), []string{c.dir})
	if err != nil {
		t.Fatal(err)
	}
	cloud.check(t, f.Machines, sites, filepath.Join(c.dir, "key"))

	c.tofu("destroy", "-auto-approve")
	if left := cloud.left(); len(left) != fixtures {
		t.Errorf("left: %q", left)
	}
	if _, err := inventory.FromTofu(t.Context(), []string{c.dir}); err == nil || !strings.Contains(err.Error(), "everything is destroyed") {
		t.Errorf("remaining objects: %v", err)
	}
	if len(cloud.strange) > 0 {
		t.Errorf("unknown requests to the stand-in:\n%s", strings.Join(cloud.strange, "\n"))
	}
}

// check compares the created machines with the listed ones.
func (o *openstack) check(t *testing.T, machines []inventory.Entry, sites []string, key string) {
	t.Helper()
	floats := map[string]bool{}
	for _, x := range o.all("floatingips") {
		floats[x["floating_ip_address"].(string)] = true
	}
	var at []string
	for _, m := range machines {
		at = append(at, m.Site)
		if !floats[m.Addr] || m.SSH.Host != m.Addr || m.SSH.User != "skerry" || !m.Sudo || m.SSH.Identity != key {
			t.Errorf("%+v %+v", m, m.SSH)
		}
	}
	if slices.Sort(at); !slices.Equal(at, sites) || len(floats) != len(sites) {
		t.Errorf("%d addresses, machines at %v, want %v", len(floats), at, sites)
	}
	for _, s := range o.all("servers") {
		text, err := base64.StdEncoding.DecodeString(fmt.Sprint(s["user_data"]))
		if err != nil || !strings.HasPrefix(string(text), "#cloud-config\nhostname: "+s["name"].(string)+"\n") || !strings.Contains(string(text), "ssh-ed25519 AAAA") || s["OS-EXT-AZ:availability_zone"] != "nova" {
			t.Errorf("%v: %v\n%s", s["name"], err, text)
		}
	}
	var open []string
	for _, r := range o.all("security-group-rules") {
		open = append(open, fmt.Sprint(r["direction"], " ", r["protocol"], " ", r["port_range_min"], "-", r["port_range_max"]))
	}
	if slices.Sort(open); !slices.Equal(open, []string{"ingress tcp 22-22", "ingress udp 51820-51899"}) {
		t.Errorf("open: %q", open)
	}
	for _, p := range o.all("ports") {
		if groups, _ := p["security_groups"].([]any); p["device_owner"] == nil && len(groups) != 1 {
			t.Errorf("port %v has the security groups %v", p["name"], groups)
		}
	}
}

// Two virtual machines are created by libvirt on a simulated machine, which is their host and the controller, then
// listed, checked, used for a trial, and destroyed.
func TestTofuLibvirt(t *testing.T) {
	folder := tofuFolder(t)
	r := newRoom(t)
	host := r.machine(1, filepath.Join(folder, "tree"))
	c := configuration{t: t, dir: r.path("lab"), folder: r.path("tofu"), command: host.command}
	for _, dir := range []string{c.dir, c.folder} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range []string{filepath.Join(folder, "bin"), filepath.Join(folder, "providers"), filepath.Join(folder, "image.qcow2"), modules} {
		r.must(exec.Command("cp", "-a", what, c.folder))
	}
	r.must(exec.Command("cp", "libvirt.sh", r.share))
	r.must(host.command(r.path("libvirt.sh"), "/root/pool"))
	// Without KVM, the CPU of a host is emulated.
	c.write("terraform {\n  required_providers {\n    libvirt = { source = \"dmacvicar/libvirt\" }\n  }\n}\nprovider \"libvirt\" {\n  uri = \"qemu:///system\"\n}\n",
		filepath.Join(c.folder, "tofu")+"//libvirt", fmt.Sprintf(`  image       = %q
  mode        = "none"
  accelerator = "qemu"
  flavor      = "1x1024"
  disk        = 4
  packages    = []
  sites       = { Melbourne = {}, Pune = {} }`, r.path("tofu/image.qcow2")))
	for _, args := range [][]string{{"init"}, {"validate"}, {"apply", "-auto-approve"}, {"plan", "-detailed-exitcode"}} {
		c.tofu(args...)
	}
	skerry := func(args ...string) (string, error) { return c.run(append([]string{r.path("skerry")}, args...)...) }
	if out, err := skerry("machines", "from-tofu", c.dir, "-o", r.path("machines.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := ""
	defer func() { t.Log(said) }()
	r.await("the readiness of the machines", func() (ready bool) {
		var err error
		said, err = skerry("machines", "check", r.path("machines.yaml"))
		return err == nil
	})
	r.write("two.yaml", `
name: two
topology:
  sites: [Melbourne, Pune, Singapore] # Redis Cluster takes three
  defaults: {rtt: 60ms}
client: Melbourne
database: redis
workload: {name: a, records: 100, threads: 2, target: 20}
stop: {time: 5s}
warmup: 1s
retries: 0
`)
	out, err := skerry("run", r.path("two.yaml"), "--machines", r.path("machines.yaml"), "--out", r.path("runs"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out)
	// Its CPUs are emulated at any speed: the trial is suspect, as the verdict says.
	if x := r.trials("runs/latest", 1)[0]; x.State != record.TrialOK || x.Goodput == 0 || len(x.Fidelity.Machines) != 2 {
		t.Errorf("%s, %g ops/s on %d machines: %s", x.State, x.Goodput, len(x.Fidelity.Machines), x.Error)
	}
	if out, err := skerry("machines", "sweep", r.path("machines.yaml")); err != nil || strings.Count(out, "nothing to remove") != 2 {
		t.Errorf("leftovers of the trial: %v\n%s", err, out)
	}
	c.tofu("destroy", "-auto-approve")
	for _, what := range [][]string{{"list", "--all", "--name"}, {"net-list", "--all", "--name"}, {"vol-list", "default"}} {
		out, err := host.command(append([]string{"virsh", "-q", "-c", "qemu:///system"}, what...)...).CombinedOutput()
		if err != nil || strings.Contains(string(out), "skerry") {
			t.Errorf("virsh %v: %v\n%s", what, err, out)
		}
	}
}
