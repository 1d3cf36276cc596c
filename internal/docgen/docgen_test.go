package docgen

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	"github.com/spf13/cobra"
)

const root = "../.."

func TestCommittedIsCurrent(t *testing.T) {
	for name, make := range map[string]func(string) ([]byte, error){
		"experiment.schema.json":  Schema,
		"experiment-reference.md": Reference,
	} {
		want, err := make(root)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(root + "/docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("docs/%s is not what the types say: run make docs", name)
		}
	}
}

// Every key has a description, or an editor shows nothing for it.
func TestEverythingIsDescribed(t *testing.T) {
	schema, err := reflected(root)
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	check := func(name string, s *jsonschema.Schema) {
		if len(s.AnyOf) == 2 {
			s = s.AnyOf[1]
		}
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			keys++
			if !strings.HasSuffix(p.Value.Description, ".") {
				t.Errorf("%s.%s: the description %q is no sentence", name, p.Key, p.Value.Description)
			}
		}
	}
	check("", schema)
	for name, s := range schema.Definitions {
		check(name, s)
	}
	if keys < 80 {
		t.Errorf("the schema has %d keys, want all of them", keys)
	}
}

func TestCommands(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	top := &cobra.Command{Use: "prog"}
	get := &cobra.Command{Use: "get FILE", Short: "Get it", Long: "Get it all.", Example: "  prog get x", Run: run}
	get.Flags().StringP("out", "o", "runs", "write to `DIR`")
	group := &cobra.Command{Use: "lab", Short: "Labs"}
	group.AddCommand(&cobra.Command{Use: "up", Short: "Bring it up", Run: run})
	top.AddCommand(get, group, &cobra.Command{Use: "agent", Hidden: true, Run: run})
	pages := Commands(top)
	for name, parts := range map[string][]string{
		"get.md":    {"# prog get\n", "Get it all.", "```\nprog get FILE [flags]\n```", "```\nprog get x\n```", "| `-o, --out DIR` | `runs` | write to DIR |"},
		"lab.md":    {"| prog lab up | Bring it up |"},
		"lab-up.md": {"# prog lab up\n"},
		"README.md": {"| [prog get](get.md) | Get it |", "| [prog lab up](lab-up.md) | Bring it up |"},
	} {
		for _, part := range parts {
			if !strings.Contains(string(pages[name]), part) {
				t.Errorf("%s lacks %q:\n%s", name, part, pages[name])
			}
		}
	}
	if len(pages) != 4 {
		t.Errorf("%d pages, want 4: hidden commands have none", len(pages))
	}
}
