package record

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ThisMachine describes the host that the process runs on.
func ThisMachine() (Machine, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Machine{}, fmt.Errorf("asking the kernel for its name: %w", err)
	}
	m := Machine{
		Name:   unix.ByteSliceToString(u.Nodename[:]),
		Kernel: unix.ByteSliceToString(u.Release[:]),
		Cores:  runtime.NumCPU(),
		CPU:    firstValue("/proc/cpuinfo", ":", "model name", "Model", "cpu"),
		OS:     strings.Trim(firstValue("/etc/os-release", "=", "PRETTY_NAME"), `"`),
	}
	kb, _, _ := strings.Cut(firstValue("/proc/meminfo", ":", "MemTotal"), " ")
	if n, err := strconv.ParseInt(kb, 10, 64); err == nil {
		m.MemoryBytes = n << 10
	}
	if m.CPU == "" {
		m.CPU = runtime.GOARCH
	}
	return m, nil
}

// TrialMachine is where a trial was measured.
type TrialMachine struct {
	Machine
	// Task is what an engine calls the task that the trial was part of, "" where none ran it.
	Task string `json:"task,omitempty"`
	// Engine emulated the links; Warnings are what the machine could not give.
	Engine   Engine   `json:"engine"`
	Warnings []string `json:"warnings,omitempty"`
	// Settings are the kernel's as nodes had them: TCP's congestion control, its buffers and others; nil in runs of
	// older versions.
	Settings map[string]string `json:"settings,omitempty"`
	// Database is the version that ran.
	Database string `json:"database,omitempty"`
	// Program is the SHA-256 sum of the skerry program that measured, in hexadecimal.
	Program string `json:"program,omitempty"`
	// Calibration was measured before the task's first trial; nil where none was.
	Calibration *Calibration `json:"calibration,omitempty"`
}

// Calibration is what a machine does of work that is the same everywhere (run/runner).
type Calibration struct {
	// DriverOps is operations of the load driver against no database, per second of processor time.
	DriverOps float64 `json:"driver_ops_per_cpu_s"`
	// Round trips of a byte over loopback, in microseconds.
	LoopbackP50US float64 `json:"loopback_p50_us"`
	LoopbackP99US float64 `json:"loopback_p99_us"`
}

// ThisProgram is the SHA-256 sum of the program that runs, in hexadecimal.
func ThisProgram() (string, error) {
	f, err := os.Open("/proc/self/exe") // what runs, also after its file was replaced
	if err != nil {
		return "", fmt.Errorf("reading this program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading this program: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// firstValue returns the value of the first of the keys that a file of "key SEP value"
// lines has, or "".
func firstValue(path, sep string, keys ...string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	found := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		k, v, ok := strings.Cut(s.Text(), sep)
		if k = strings.TrimSpace(k); ok && found[k] == "" {
			found[k] = strings.TrimSpace(v)
		}
	}
	for _, k := range keys {
		if found[k] != "" {
			return found[k]
		}
	}
	return ""
}

// fillMachine fills in what a caller of Create left open.
func (r *Run) fillMachine() error {
	if r.Versions.Go == "" {
		r.Versions.Go = runtime.Version()
	}
	if r.Host != (Machine{}) {
		return nil
	}
	var err error
	r.Host, err = ThisMachine()
	return err
}
