package page

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A figure that is there, one that is not, and another that is not.
const (
	there = "{{figure `made` `of=goodput` `where=workload=a,scale=1`}}"
	yet   = "{{figure `later` `of=goodput`}}"
	never = "{{figure `made` `of=goodput` `where=workload=z`}}"
)

// call is a call as an argument of another one.
func call(action string) string { return strings.Trim(action, "{}") }

// What is not measured yet is left out, with what is there for its sake alone.
func TestLeftOut(t *testing.T) {
	for name, tt := range map[string]struct{ template, want string }{
		"paragraphs without a figure": {
			"First " + there + ".\n\nSecond\n" + yet + ".\n\nThird " + there + ", " + yet + ".\n",
			"First 100 ± 2.\n\nThird 100 ± 2, not measured yet.\n",
		},
		"words that do without": {
			"It is near{{words `: %s a second` (" + call(there) + ")}}.\nIt is far{{words `: %s` (" + call(yet) + ")}}.\n",
			"It is near: 100 ± 2 a second.\nIt is far.\n",
		},
		"rows": {
			"| a | b |\n|---|---|\n| c | " + yet + " |\n| d | " + there + " |\n| e | " + never + " |\n| f | g |\n",
			"| a | b |\n|---|---|\n| d | 100 ± 2 |\n| f | g |\n",
		},
		"rows in part": {
			"| a | b |\n|---|---|\n| " + there + " | " + yet + " |\n",
			"| a | b |\n|---|---|\n| 100 ± 2 | – |\n",
		},
		"whole tables": {
			"Before.\n\n| a | b |\n|---|---|\n| c | " + yet + " |\n\nAfter.\n",
			"Before.\n\nAfter.\n",
		},
		"items, with all their lines": {
			"- one\n  " + yet + "\n- two " + there + "\n  goes on\n1. three " + never + "\n",
			"- two 100 ± 2\n  goes on\n",
		},
		"lead-ins": {
			"Ours:\n\n{{table `later` `rows=scale` `columns=goodput`}}\n\nTheirs,\nand others:\n\n{{paper `named`}}\n\nA list:\n\n- " + yet + "\n\nThat was it.\n",
			"Theirs,\nand others:\n\n| document | a b |\n| --- | --- |\n| A | 7 |\n| B | 8.5 |\n\nThat was it.\n",
		},
		"sections": {
			"# Page\n\nText.\n\n## One\n\nOne's text.\n\n### In one\n\n" + yet + "\n\n{{paper `named`}}\n\n## Two\n\n### In two\n\nGone " + yet + "\n\n### More of two\n\nIs " + there + ".\n\n## Three\n\nNo figures.\n",
			"# Page\n\nText.\n\n## Two\n\n### More of two\n\nIs 100 ± 2.\n\n## Three\n\nNo figures.\n",
		},
		"a page's own heading stays": {
			"# Page\n\n" + yet + "\n",
			"# Page\n",
		},
	} {
		p, err := Fill("x", []byte(tt.template), made{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, string(p.Text)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A section says which command measures what it lacks, and nothing where it lacks nothing.
func TestWaiting(t *testing.T) {
	how := " This measures what is missing, on a machine that does nothing else, in 90 minutes at most:\n\n```\nskerry reproduce "
	for name, tt := range map[string]struct{ template, note string }{
		"nothing is there": {"# Page\n\nWords.\n\n{{waiting `parts`}}\n\n## One\n\n" + yet + "\n\n" + never + "\n", "None of the 2 parts is measured yet." + how + "later made\n```\n"},
		"some is":          {"## Page\n\n- " + yet + "\n- " + there + "\n\n{{waiting `findings here`}}\n", "Not measured yet, and left out: 1 of the 2 findings here." + how + "later\n```\n"},
		"a figure is not":  {"## Page\n\n- " + yet + there + "\n\n{{waiting `findings`}}\n", "Some figures of the findings are not measured yet." + how + "later\n```\n"},
		"words are left":   {"## Page\n\n- One{{words `%s` (" + call(yet) + ")}}.\n\n{{waiting `findings`}}\n", "Some figures of the findings are not measured yet." + how + "later\n```\n"},
		"another lacks it": {"## Page\n\nIs " + there + ".\n\n{{waiting `parts`}}\n\n## Other\n\n" + yet + "\n", ""},
		"all is there":     {"# Page\n\n{{waiting `parts`}}\n\nIs " + there + ".\n", ""},
	} {
		p, err := Fill("x", []byte(tt.template), made{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text := string(p.Text); !strings.Contains(text, tt.note) || tt.note == "" && strings.Contains(text, "reproduce") {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, tt.note)
		}
	}
}
