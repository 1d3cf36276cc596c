package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/experiment"
	"skerry/internal/record"
)

// fact is a line of the environment.
type fact struct{ Name, Value string }

// environment describes the machines, the versions and the times of the run.
func (m *model) environment() (facts []fact) {
	r := m.dir.Run
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	add("Host", r.Host.Name)
	add("System", r.Host.OS)
	add("Kernel", r.Host.Kernel)
	if r.Host.Cores > 0 {
		add("Processor", fmt.Sprintf("%s, %s", r.Host.CPU, plural(r.Host.Cores, "core")))
	}
	if r.Host.MemoryBytes > 0 {
		add("Memory", fmt.Sprintf("%.1f GiB", float64(r.Host.MemoryBytes)/(1<<30)))
	}
	facts = append(facts, m.machineFacts()...)
	if r.Engine.Name != "" {
		add("Link engine", strings.TrimSuffix(r.Engine.Name+": "+r.Engine.Why, ": "))
	}
	add("Skerry", r.Versions.Skerry)
	add("Go", r.Versions.Go)
	for _, name := range slices.Sorted(maps.Keys(r.Versions.Databases)) {
		add(experiment.Short(name), r.Versions.Databases[name])
	}
	add("Seed", strconv.FormatUint(r.Seed, 10))
	add("Started", r.Started.Format(time.RFC1123Z))
	if !r.Finished.IsZero() {
		add("Finished", r.Finished.Format(time.RFC1123Z))
	}
	for _, t := range r.Resumed {
		add("Resumed", t.Format(time.RFC1123Z))
	}
	add("Run directory", m.dir.Summary.Run)
	return facts
}

// again is the command that runs an experiment file as it was run.
func again(f record.File) string {
	line := []string{"skerry", "run", fileName(f.Path)}
	for _, s := range f.Set {
		line = append(line, "--set", s)
	}
	if f.Fast {
		line = append(line, "--fast")
	}
	return shellLine(line)
}

// shellLine writes a command so that a shell reads it back.
func shellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		safe := a != "" && !strings.ContainsFunc(a, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,%+@", r)
		})
		if !safe {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted[i] = a
	}
	return strings.Join(quoted, " ")
}

func fileName(path string) string {
	if path == "" {
		return "experiment.yaml"
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}
