// Package oracle compares Skerry's workloads with YCSB: release 0.17.0 draws keys, fields, lengths and operations for
// every property file of test/corpus/workloads/ycsb, and Skerry must draw the same.
package oracle

import (
	_ "embed"

	"skerry/internal/install"
)

//go:embed jars.lock
var jars string

// Recipe installs YCSB's core and a Java compiler for Draw.java.
var Recipe = install.Recipe{
	Name:    "ycsb",
	Summary: "YCSB 0.17.0, which tests compare workloads with (jars, runs on Java 11 to 25)",
	Wanted:  install.BySlow,
	Jars:    jars,
	Java:    install.Java{Min: 11, Max: 25},
}
