package testkit

import (
	"os"
	"os/exec"
	"slices"

	"skerry/internal/install"
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
	Redis    = Feature{"redis", installed("redis", "redis-server")}
	Valkey   = Feature{"valkey", asked("valkey", installed("valkey", "valkey-server"))}
	Etcd     = Feature{"etcd", installed("etcd", "etcd")}
	Postgres = Feature{"postgres", asked("postgres", installed("postgres", "postgres"))}
	MongoDB  = Feature{"mongodb", installed("mongodb", "mongod")}
	FerretDB = Feature{"ferretdb", asked("ferretdb", installed("ferretdb", "ferretdb"))}
	Galera   = Feature{"galera", installed("galera", "mariadbd")}
	MySQL    = Feature{"mysql-group-replication", asked("mysql-group-replication", installed("mysql-group-replication", "mysqld"))}
	NDB      = Feature{"mysql-ndb", asked("mysql-ndb", installed("mysql-ndb", "ndbmtd"))}
	// Cassandra is the default version of it.
	Cassandra = Feature{"cassandra", cached("cassandra@5.0")}
	HBase     = Feature{"hbase", asked("hbase", cached("hbase"))}
	QEMU      = Feature{"qemu", program("qemu-system-x86_64")}
	Dig       = Feature{"dig", program("dig")}
	Babel     = Feature{"babeld", installed("babeld", "babeld")}
	Tinc      = Feature{"tinc", installed("tinc", "tincd")}
	HAProxy   = Feature{"haproxy", installed("haproxy", "haproxy")}
	Git       = Feature{"git", program("git")}
	DpkgDeb   = Feature{"dpkg-deb", program("dpkg-deb")}
	Setpriv   = Feature{"setpriv", program("setpriv")}
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
	// ClassArchives is a Java, from 13 on, that writes archives of its classes.
	ClassArchives Ability = "class-archives"
	// RealTime is a scheduler that gives root real-time priority.
	RealTime Ability = "real-time"
)

func program(name string) func() string {
	return func() string {
		if _, err := exec.LookPath(name); err != nil {
			return err.Error()
		}
		return ""
	}
}

// leftOut are the databases that make test leaves to make conformance: it names what it
// tests, and not these.
var leftOut = []string{"valkey", "postgres", "hbase", "mysql-group-replication", "mysql-ndb", "ferretdb", "cassandra@4.1"}

// asked is for databases of leftOut.
func asked(name string, missing func() string) func() string {
	return func() string {
		if why := NotAsked(name); why != "" {
			return why
		}
		return missing()
	}
}

// NotAsked says why tests of a database are not run: it takes minutes, and SKERRY_REQUIRE
// lists what is to be tested, and not it. Without a list all that is installed is tested.
func NotAsked(name string) string {
	if os.Getenv("SKERRY_REQUIRE") == "" || !slices.Contains(leftOut, name) || slices.Contains(required(), name) {
		return ""
	}
	return "not asked for; make conformance tests all databases"
}

// installed looks in the cache of `skerry install`, then in PATH.
func installed(database, server string) func() string {
	return func() string {
		dir, err := install.DefaultDir()
		if err != nil {
			return err.Error()
		}
		if _, _, err := (install.Store{Dir: dir}).Current(database); err == nil {
			return ""
		}
		return program(server)()
	}
}

// cached looks in the cache of `skerry install` alone.
func cached(key string) func() string {
	return func() string {
		dir, err := install.DefaultDir()
		if err != nil {
			return err.Error()
		}
		if _, _, err := (install.Store{Dir: dir}).Current(key); err != nil {
			return err.Error()
		}
		return ""
	}
}
