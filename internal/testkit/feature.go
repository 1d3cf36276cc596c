package testkit

import (
	"os"
	"os/exec"

	"skerry/web"
)

// Features that tests ask for.
var (
	Root = Feature{"root", func() string {
		if os.Geteuid() != 0 {
			return "not running as root"
		}
		return ""
	}}
	TUN = Feature{"tun", func() string {
		f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
		if err != nil {
			return err.Error()
		}
		f.Close()
		return ""
	}}
	FUSE = Feature{"fuse", func() string {
		f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		if err != nil {
			return err.Error()
		}
		f.Close()
		return ""
	}}
	// FrontEnd is what make web builds: without it a binary has no report and no dashboard.
	FrontEnd = Feature{"front-end", func() string {
		if _, err := web.ReportPage(); err != nil {
			return err.Error()
		}
		return ""
	}}
	QEMU     = Feature{"qemu", program("qemu-system-x86_64")}
	Dig      = Feature{"dig", program("dig")}
	Ping     = Feature{"ping", program("ping")}
	Git      = Feature{"git", program("git")}
	DpkgDeb  = Feature{"dpkg-deb", program("dpkg-deb")}
	Make     = Feature{"make", program("make")}
	Setpriv  = Feature{"setpriv", program("setpriv")}
	Chromium = Feature{"chromium", program("chromium")}
	// Jupyter executes notebooks. It comes with pandas and matplotlib where a test needs it.
	Jupyter = Feature{"jupyter", ends("jupyter", "nbconvert", "--version")}
	// Analysis are the Python packages that read a run directory's files.
	Analysis = Feature{"pandas-duckdb", ends("python3", "-c", "import duckdb, pandas, pyarrow")}
	// R is R with the packages that read them.
	R = Feature{"r-analysis", ends("Rscript", "-e", "library(jsonlite); library(nanoparquet)")}
)

// Abilities that tests find out about.
const (
	UserNamespaces Ability = "user-namespaces"
	Mounts         Ability = "mounts"
	LoopVolumes    Ability = "loop-volume"
	OverlayVolumes Ability = "overlay-volume"
	// Cgroups are control groups of CPU and memory of either version, Cgroup2 those of
	// version 2, DiskCgroups those that bound the disk of the tests' directory.
	Cgroups     Ability = "cgroups"
	Cgroup2     Ability = "cgroup2"
	DiskCgroups Ability = "disk-cgroups"
	// DirectIO is a file system that is written to past the page cache.
	DirectIO Ability = "direct-io"
	// SharedMemory is a directory below /dev/shm.
	SharedMemory Ability = "shared-memory"
	// ClassArchives is a Java, from 13 on, that writes archives of its classes.
	ClassArchives Ability = "class-archives"
	// Quiet is a machine that leaves a measurement undisturbed for once.
	Quiet Ability = "quiet"
	// Delays is a kernel that counts what threads wait for: processors (schedstat), and disks (pressure).
	Delays Ability = "delays"
	// RealTime is a scheduler that gives root real-time priority.
	RealTime Ability = "real-time"
)

// ends is a feature that is there when a command ends well.
func ends(name string, args ...string) func() string {
	return func() string {
		if why := program(name)(); why != "" {
			return why
		}
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			return name + ": " + string(out)
		}
		return ""
	}
}

func program(name string) func() string {
	return func() string {
		if _, err := exec.LookPath(name); err != nil {
			return err.Error()
		}
		return ""
	}
}
