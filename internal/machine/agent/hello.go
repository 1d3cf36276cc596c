package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"skerry/internal/machine/rpc"
)

// hello is what this agent says of itself, with its program's checksum where that is asked for.
func hello(program bool) (rpc.Hello, error) {
	h := rpc.Hello{
		Version: rpc.Version, PID: os.Getpid(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Cores: runtime.NumCPU(), Root: os.Geteuid() == 0,
	}
	var name unix.Utsname
	var info unix.Sysinfo_t
	if err := unix.Uname(&name); err != nil {
		return h, fmt.Errorf("asking for the kernel's version: %w", err)
	}
	if err := unix.Sysinfo(&info); err != nil {
		return h, fmt.Errorf("asking for the memory: %w", err)
	}
	h.Kernel, h.Memory = unix.ByteSliceToString(name.Release[:]), int64(info.Totalram)*int64(info.Unit)
	h.Addr = outward()
	if !program {
		return h, nil
	}
	var err error
	h.Program, err = Sum("/proc/self/exe")
	return h, err
}

// Sum is the SHA-256 of a file, in hexadecimal.
func Sum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading the program: %w", err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", fmt.Errorf("reading the program: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// outward is the address that packets to far away leave with.
func outward() string {
	c, err := net.Dial("udp4", "192.0.2.1:9") // nothing is sent (RFC 5737)
	if err != nil {
		return ""
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).IP.String()
}
