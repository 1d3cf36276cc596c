package manual

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestPages(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	top := &cobra.Command{Use: "skerry"}
	get := &cobra.Command{Use: "get FILE", Short: "Get it", Long: "Get it all.", Example: "  skerry get x", Run: run}
	get.Flags().StringP("out", "o", "runs", "write to `DIR`")
	group := &cobra.Command{Use: "lab", Short: "Labs"}
	group.AddCommand(&cobra.Command{Use: "up", Short: "Bring it up", Run: run})
	top.AddCommand(get, group, &cobra.Command{Use: "agent", Hidden: true, Run: run})
	p := NewPages(top)
	pages := p.Pages
	pages["README.md"] = Index([]Pages{p})
	for name, parts := range map[string][]string{
		"get.md": {"# skerry get\n", "Get it all.", "```\nskerry get FILE [flags]\n```", "```\nskerry get x\n```",
			"| `-o, --out DIR` | `runs` | write to DIR |"},
		"lab.md":    {"| skerry lab up | Bring it up |"},
		"lab-up.md": {"# skerry lab up\n"},
		"README.md": {"| [skerry get](get.md) | Get it |", "| [skerry lab up](lab-up.md) | Bring it up |"},
	} {
		for _, part := range parts {
			if !strings.Contains(pages[name], part) {
				t.Errorf("%s lacks %q:\n%s", name, part, pages[name])
			}
		}
	}
	if len(pages) != 4 {
		t.Errorf("%d pages, want 4: hidden commands have none", len(pages))
	}
}

// The pages of another program have its name, and its root has a page.
func TestPagesOfOtherProgram(t *testing.T) {
	top := &cobra.Command{Use: "hydra", Short: "Rows"}
	top.AddCommand(&cobra.Command{Use: "up", Short: "Start it", Run: func(*cobra.Command, []string) {}})
	p := NewPages(top)
	if len(p.Pages) != 2 || p.Pages["hydra.md"] == "" || p.Pages["hydra-up.md"] == "" {
		t.Errorf("pages %v", p.Pages)
	}
}
