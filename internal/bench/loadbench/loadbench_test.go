package loadbench

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

func TestNullQuick(t *testing.T) {
	r, err := Run(context.Background(), Options{Only: []string{PartNull}, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Null {
		if n.PerCPUSecond <= 0 || len(n.Runs) != nullRuns || n.Operations == 0 {
			t.Errorf("%+v", n)
		}
	}
	var b bytes.Buffer
	if err := r.Text(&b); err != nil || !strings.Contains(b.String(), "null database") {
		t.Errorf("%v: %s", err, b.String())
	}
}

func TestUnknownPart(t *testing.T) {
	if _, err := Run(context.Background(), Options{Only: []string{"nul"}}); !errors.Is(err, ErrPart) {
		t.Error(err)
	}
}

func TestClientOutputPatterns(t *testing.T) {
	for name, text := range map[string]string{
		"skerry": "[OVERALL], Throughput(ops/sec), 95481.8\n[READ], Operations, 1000\n[READ], Return=OK, 1000\n",
		"ycsb":   "[OVERALL], Throughput(ops/sec), 1.25E5\n[TOTAL_GCs], Count, 5\n[READ], Return=OK, 1000\n[CLEANUP], Operations, 1\n",
	} {
		if okLine.FindString(text) == "" || throughputLine.FindString(text) == "" {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestAuditQuick(t *testing.T) {
	r, err := Run(context.Background(), Options{Only: []string{PartAudit}, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Audit.Overhead {
		if x.With <= 0 || x.Without <= 0 {
			t.Errorf("%+v", x)
		}
	}
	var b bytes.Buffer
	if err := r.Text(&b); err != nil || !strings.Contains(b.String(), "audit, null database") {
		t.Errorf("%v: %s", err, b.String())
	}
}
