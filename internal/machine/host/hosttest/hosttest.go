// Package hosttest is the contract of host.Host. It uses only the interface.
package hosttest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Run tests a host, whose directory other users may enter.
func Run(t *testing.T, h host.Host) {
	for name, part := range map[string]func(t *testing.T, h host.Host){
		"dial":                testDial,
		"last words":          testLastWords,
		"names":               testNames,
		"dialling that waits": testPatience,
		"whole files":         testWhole,
		"missing files":       testMissing,
		"folders":             testFolders,
		"owners":              testOwners,
		"large files":         testLarge,
		"growing files":       testGrowing,
		"space":               testSpace,
		"files too late":      testTooLate,
		"life":                testLife,
		"families":            testFamily,
		"logs":                testLog,
		"users":               testUser,
	} {
		t.Run(name, func(t *testing.T) { part(t, h) })
	}
}

// folder makes a directory on the node for the duration of the test.
func folder(t *testing.T, h host.Host) string {
	t.Helper()
	dir := filepath.Join(h.Dir(), "contract")
	if err := files.Empty(t.Context(), h.Files(), dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Files().Remove(context.WithoutCancel(t.Context()), dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func script(text string) host.Command {
	return host.Command{Name: "script", Path: "/bin/sh", Args: []string{"-c", text}}
}

// start runs a program until the test ends.
func start(t *testing.T, h host.Host, c host.Command) host.Process {
	t.Helper()
	p, err := h.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.KillFamily(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// output runs a program and returns its output.
func output(t *testing.T, h host.Host, c host.Command) string {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	p := start(t, h, c)
	<-p.Done()
	if err := p.Err(); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	return strings.TrimSpace(out.String())
}

// told starts a program and returns its first line of output.
func told(t *testing.T, h host.Host, c host.Command) (host.Process, string) {
	t.Helper()
	out, in := io.Pipe()
	var watcher sync.WaitGroup
	t.Cleanup(watcher.Wait)
	c.Stdout = in
	p := start(t, h, c)
	watcher.Go(func() {
		<-p.Done()
		in.Close() // it may have said nothing
	})
	t.Cleanup(func() { out.Close() }) // the rest is not read
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it said %q and ended: %v", line, p.Err())
	}
	return p, strings.TrimSpace(line)
}
