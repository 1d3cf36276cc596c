package shell

import (
	"context"
	"strings"

	"skerry/internal/system/metadata"
)

// maxCompletions is how many names are offered.
const maxCompletions = 200

// Complete returns the part of a line that stays, and what may stand behind it: names of
// commands, then paths.
func (s *Shell) Complete(ctx context.Context, line string) (head string, words []string) {
	at := strings.LastIndexByte(line, ' ') + 1
	head, word := line[:at], line[at:]
	if strings.TrimSpace(head) == "" {
		for _, name := range commandNames() {
			if strings.HasPrefix(name, word) {
				words = append(words, name+" ")
			}
		}
		return head, words
	}
	if strings.HasPrefix(word, "-") || strings.ContainsAny(line, `"'\`) {
		return head, nil
	}
	return head, s.paths(ctx, word)
}

func commandNames() []string {
	names := []string{"cd", "exit", "help", "pwd"}
	for _, o := range metadata.Ops() {
		if !o.Internal() {
			names = append(names, o.String())
		}
	}
	return names
}

// paths are the paths that word can become.
func (s *Shell) paths(ctx context.Context, word string) []string {
	dir, prefix := "", word
	if i := strings.LastIndexByte(word, '/'); i >= 0 {
		dir, prefix = word[:i+1], word[i+1:]
	}
	c, err := metadata.ParseIn(s.dir, "ls -l "+metadata.Quote(either(dir, ".")))
	if err != nil {
		return nil
	}
	c.After, c.Limit = before(prefix), metadata.DefaultLimit
	r := s.Client.One(ctx, c)
	var words []string
	for _, e := range r.Entries {
		if !strings.HasPrefix(e.Name, prefix) || len(words) == maxCompletions {
			continue
		}
		full := metadata.Quote(dir + e.Name)
		if e.Kind != metadata.File {
			full += "/"
		}
		words = append(words, full)
	}
	return words
}

func either(s, standard string) string {
	if s == "" {
		return standard
	}
	return s
}

// before is a name that comes before all that begin with prefix, and behind most others,
// so that the page that is asked for begins where they do.
func before(prefix string) string {
	n := len(prefix)
	if n == 0 || prefix[n-1] <= '!' || prefix[n-1] >= 0x80 {
		return ""
	}
	return prefix[:n-1] + string(rune(prefix[n-1]-1)) + "\U0010ffff"
}
