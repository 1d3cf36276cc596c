package house

import (
	"go/ast"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// vagueVerbs are unclear without an object.
var vagueVerbs = []string{"ask", "give", "hear", "keep", "know", "look", "say", "see", "take", "tell"}

func TestFunctionsAreVerbAndObject(t *testing.T) {
	for _, f := range files(t) {
		for _, fn := range f.Functions() {
			_, name, isMethod := strings.Cut(fn.Name, ".")
			if !isMethod {
				name = fn.Name
			}
			if slices.Contains(vagueVerbs, strings.ToLower(name)) {
				t.Errorf("%s: %s: a function's name is a verb and its object", f.Name, fn.Name)
			}
		}
	}
}

// glossary returns the terms of docs/glossary.md, in lower case, and its shared type names.
func glossary(t *testing.T) (terms, types map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	words, shared, ok := strings.Cut(string(text), "\n## Type names")
	if !ok {
		t.Fatal("docs/glossary.md has no section Type names")
	}
	terms, types = map[string]bool{}, map[string]bool{}
	for _, row := range firstCell.FindAllStringSubmatch(words, -1) {
		for term := range strings.SplitSeq(row[1], ",") {
			terms[strings.ToLower(strings.Trim(term, " `"))] = true
		}
	}
	for _, row := range firstCell.FindAllStringSubmatch(shared, -1) {
		for name := range strings.SplitSeq(row[1], ",") {
			types[strings.Trim(name, " `")] = true
		}
	}
	return terms, types
}

// commonNouns are package names that are names of databases and programs, or nouns of Go, Linux and networks.
var commonNouns = []string{
	"account", "advice", "all", "api", "atomicfile", "babel", "backup", "balancer", "bearer", "bodylimit",
	"bucket", "ca", "cassandra", "cgroup", "changelog", "check", "choice", "choose", "client",
	"cloudsql", "cluster", "command", "compare", "consensus", "custom", "daemon", "database", "dataplane",
	"deploy", "device", "dialtls", "dispatch", "dns", "docgen", "doctor", "draft", "etcd", "experiment",
	"ferretdb", "files", "fleet", "flock", "framing", "galera", "groupreplication", "hbase", "helperproc",
	"host", "hydraclient", "install", "instance", "inventory", "jarlock", "journal", "kubernetes", "lab", "labbench",
	"linger", "link", "linkbench", "linkcheck", "live", "load", "loadbench", "local", "machine",
	"manual", "member", "metadata", "metric", "mongodb", "mount", "multihost", "mysql", "ndb", "netem",
	"netns", "netprofile", "network", "packet", "pathprobe", "placement", "postgres", "probe", "process",
	"procfs", "progress", "protocol", "race", "realtime", "rebalance", "record", "redis", "remote",
	"report", "results", "rootless", "rpc", "runner", "sample", "series", "serve", "server",
	"service", "shaper", "slurm", "ssh", "stats", "statustext", "store", "stress", "strict", "suggest",
	"svg", "tail", "tinc", "topology", "tree", "trial", "tunnel", "unit",
	"userspace", "varint", "wal", "wallet", "warnings", "webdata", "webguard", "ycsb", "ycsbcli",
}

var firstCell = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)

// The name of a package is a term of the glossary, a database, or a noun of Go and Linux.
func TestPackageNamesAreTerms(t *testing.T) {
	terms, _ := glossary(t)
	for _, p := range packages(t) {
		if name := path.Base(p.Path); !terms[name] && !slices.Contains(commonNouns, name) && !strings.HasSuffix(name, "test") {
			t.Errorf("%s: %q is neither in docs/glossary.md nor a common noun", p.Path, name)
		}
	}
}

// An exported type name that three packages use has one meaning, defined in the glossary.
func TestTypeNamesMeanOneThing(t *testing.T) {
	_, shared := glossary(t)
	owners := map[string][]string{}
	for _, p := range packages(t) {
		for _, f := range p.Files {
			for _, d := range f.AST.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, s := range g.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok && unicode.IsUpper(rune(ts.Name.Name[0])) {
						owners[ts.Name.Name] = append(owners[ts.Name.Name], p.Path)
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		if len(owners[name]) >= 3 && !shared[name] {
			t.Errorf("type %s is in %s, and docs/glossary.md gives no meaning for all of them", name, strings.Join(owners[name], ", "))
		}
	}
	for name := range shared {
		if name != "type" && len(owners[name]) < 3 {
			t.Errorf("docs/glossary.md explains type %s, which %d packages have", name, len(owners[name]))
		}
	}
}
