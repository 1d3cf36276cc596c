package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/invopop/jsonschema"
)

const referenceHead = `# The experiment file

<!-- Made by "make docs" from the types in internal/experiment and internal/topology. -->

An experiment is one YAML file: where (topology, client), what (database, workload), how long (warmup, stop), and what
varies (matrix, repetitions). The examples under ` + "`experiments/`" + ` have comments.

` + "```yaml" + `
# yaml-language-server: $schema=experiment.schema.json
name: near-and-far
topology: azure8
client: Singapore
database: redis
workload: {name: a, records: 10000, threads: 32}
stop: {time: 60s, confidence: 5%}
matrix:
  workload: [a, c]
  scale: [0.2, 1.0]
repetitions: 3
` + "```" + `

- ` + "`skerry validate FILE`" + ` prints the plan, or every mistake with its line and column. Nothing starts before the
  file is valid.
- ` + "`skerry schema`" + ` prints a JSON Schema for completion and validation in editors.
- ` + "`--set PATH=VALUE`" + ` changes a value without editing the file: ` + "`--set scale=0.2`, " +
	"`--set workload.threads=64`,\n  `--set 'matrix.scale=[0.2, 1.0]'`,\n  `--set 'events[0].at=10s'`" + `.

## How values are written

| kind | written | |
|---|---|---|
| duration | ` + "`40ms`, `2s`, `1m30s`" + ` | ns, us, ms, s, m, h; a number alone is refused |
| bandwidth | ` + "`500kbit`, `100mbit`, `1.5gbit`, `unlimited`" + ` | per second, powers of 1000; bytes of IP packets |
| size | ` + "`64KiB`, `512MiB`, `4GiB`, `100MB`" + ` | KiB is 1024 bytes, kB is 1000 |
| share | ` + "`5%`, `0.05`" + ` | from 0 to 1 |

A mapping with a shorthand also accepts a single value: ` + "`client: Singapore` is `client: {site: Singapore}`" + `. A list or
mapping in the matrix, in ` + "`fast`" + ` or in ` + "`--set`" + ` is merged into the file. A value that excludes another one (workload
name and file, latency and rtt) replaces it.

## Topologies by name

| preset | |
|---|---|
| ` + "`azure8`" + ` | eight Azure datacentres with the latencies and bandwidths of Table III of the FHC paper, as printed. ` +
	`The table has one bandwidth per pair, of downloads; it is used for both directions |
| ` + "`azure8-geo`" + ` | the same sites and bandwidths with latencies by great-circle distance |
| ` + "`pair`, `triangle`" + ` | two or three sites, n1, n2 ..., every pair linked |
| ` + "`mesh:N`, `ring:N`" + ` | N sites, every pair linked or each to the next |

The last two rows take options, the keys of ` + "`defaults`" + `: ` + "`mesh:5,rtt=40ms,bandwidth=100mbit,loss=1%`" + `; ` +
	`without one the round trip is
20 ms. Two nodes of one site are 0.5 ms of round trip apart (` + "`site_rtt`" + `).

Between sites with coordinates, one way takes great circle x detour / 204,190 km/s, the speed of light in fibre of
refractive index 1.468. The detour is 1.5 unless set: fibres follow coasts and exchanges, not great circles.

## The plan of trials

Every combination of the matrix is a cell. Every repetition runs all cells once, in a random order derived from the seed.
Slow changes of the machine therefore affect all cells alike. The order is recorded. Each trial has its own seed: the n-th ` +
	`output of SplitMix64 started at the experiment's ` + "`seed`" + `, where n is the trial's number in the
order of the file.

Every trial has its own lab and cluster. With ` + "`reuse: true`" + `, the trials of one cloud and one database share a cluster
within a repetition. Its table is emptied and loaded again for each trial. The database is warm, and its timeouts are
those for the largest scale. A failed trial discards the cluster. Databases on Java need minutes to warm up:
` + "`cluster_warmup`" + ` drives a new cluster before its first trial. Events and CPU credits are rejected with ` + "`reuse`" + `,
because their effects would reach the next trial.

`

// Reference returns the Markdown reference of experiment files. root is as for Schema.
func Reference(root string) ([]byte, error) {
	s, err := experimentSchema(root)
	if err != nil {
		return nil, err
	}
	r := &reference{schema: s, met: map[string]string{}}
	r.b.WriteString(referenceHead)
	r.object("The whole file", "", s)
	for len(r.queue) > 0 {
		next := r.queue[0]
		r.queue = r.queue[1:]
		r.object("`"+next.path+"`", next.name, s.Definitions[next.name])
	}
	return []byte(strings.TrimRight(r.b.String(), "\n") + "\n"), nil
}

// reference writes objects breadth first, each at its first occurrence.
type reference struct {
	schema *jsonschema.Schema
	b      strings.Builder
	met    map[string]string // path of the first occurrence of a type
	queue  []section
}

type section struct{ path, name string }

func (r *reference) object(title, name string, s *jsonschema.Schema) {
	fmt.Fprintf(&r.b, "## %s\n\n", title)
	short := ""
	description := s.Description
	if len(s.AnyOf) == 2 {
		for p := s.AnyOf[1].Properties.Oldest(); p != nil; p = p.Next() {
			if p.Value.Description == s.AnyOf[0].Description {
				short = p.Key
			}
		}
		s = s.AnyOf[1]
	}
	if name != "" && description != "" {
		fmt.Fprintf(&r.b, "%s\n\n", markdown(description))
	}
	if short != "" {
		fmt.Fprintf(&r.b, "Shorthand: a single value is its `%s`.\n\n", short)
	}
	r.b.WriteString("| key | value | default | |\n|---|---|---|---|\n")
	path := strings.Trim(title, "`")
	if name == "" {
		path = ""
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		key := p.Key
		fallback := "-"
		for _, required := range s.Required {
			if required == key {
				fallback = "**required**"
			}
		}
		if d := p.Value.Default; d != nil {
			fallback = fmt.Sprintf("`%v`", d)
		}
		fmt.Fprintf(&r.b, "| `%s` | %s | %s | %s |\n", key, r.value(p.Value, joinPath(path, key)), fallback, describeKey(key, p.Value))
	}
	r.b.WriteString("\n")
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// value describes the value of a key.
func (r *reference) value(s *jsonschema.Schema, path string) string {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		if r.met[name] == "" {
			r.met[name] = path
			r.queue = append(r.queue, section{path, name})
		}
		return fmt.Sprintf("[%s](#%s)", keyName(name), anchor(r.met[name]))
	}
	switch {
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			words[i] = fmt.Sprintf("`%v`", e)
		}
		return strings.Join(words, ", ")
	case s.Comments != "":
		return s.Comments
	case s.Type == "array":
		return "list of " + r.value(s.Items, path+"[]")
	case s.Type == "object":
		return "mapping"
	case s.Type == "boolean":
		return "true or false"
	case s.Type == "integer":
		return "whole number" + bounds(s)
	case s.Type == "number":
		return "number" + bounds(s)
	case s.Type == "string":
		return "text"
	}
	return "value"
}

// anchor returns the link target of a path.
func anchor(path string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "[", "", "]", "").Replace(path))
}

// wordBoundary matches the end of a word in a Go name.
var wordBoundary = regexp.MustCompile("([a-z])([A-Z])")

// keyName returns the key of a type: "defaults" for DefaultsSpec, "link_down" for LinkDown.
func keyName(name string) string {
	if name == "Spec" {
		return "topology"
	}
	return strings.ToLower(wordBoundary.ReplaceAllString(strings.TrimSuffix(name, "Spec"), "${1}_$2"))
}

func bounds(s *jsonschema.Schema) string {
	switch {
	case s.Minimum != "" && s.Maximum != "":
		return fmt.Sprintf(", %s to %s", s.Minimum, s.Maximum)
	case s.Minimum != "":
		return fmt.Sprintf(", at least %s", s.Minimum)
	case s.ExclusiveMinimum != "":
		return fmt.Sprintf(", above %s", s.ExclusiveMinimum)
	}
	return ""
}

// describeKey returns a description for a table row, without the key and "is".
func describeKey(key string, s *jsonschema.Schema) string {
	text := strings.ReplaceAll(strings.ReplaceAll(s.Description, "\n\n", " "), "|", `\|`)
	if rest, ok := strings.CutPrefix(text, key+" "); ok {
		word, after, _ := strings.Cut(rest, " ")
		switch {
		case word == "is", word == "are":
			text = after
		case strings.HasSuffix(word, "s"): // a verb
			text = rest
		}
	}
	if text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if len(s.Examples) > 0 && s.Comments == "" {
		var list []string
		for _, e := range s.Examples {
			list = append(list, fmt.Sprintf("`%v`", e))
		}
		text += " For example " + strings.Join(list, ", ") + "."
	}
	return text
}

// markdown fences the indented paragraphs of a comment.
func markdown(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, "\t") {
			paragraphs[i] = "```\n" + strings.ReplaceAll(strings.TrimPrefix(p, "\t"), "\n\t", "\n") + "\n```"
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
