package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"skerry/internal/database"
	"skerry/internal/database/all"
	"skerry/internal/docgen/manual"
	"skerry/internal/report/results"
)

const smokeDir = "experiments/smoke"

const registry = "the registry in internal/database/all"

// programs are the programs whose commands have pages.
var programs = []string{"skerry", "hydra", "metad"}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage, in the root of the repository: go run ./internal/docgen docs|notice")

func run(ctx context.Context, args []string) error {
	switch strings.Join(args, " ") {
	case "docs":
		return writeDocs("docs", ".")
	case "notice":
		return WriteNotice(ctx, os.Stdout, ".")
	}
	return errUsage
}

// writeDocs writes all generated files: documentation into dir, smoke experiments and front-end types
// below root. It removes pages of removed commands.
func writeDocs(dir, root string) error {
	files, err := Files(dir, root)
	if err != nil {
		return err
	}
	pages := filepath.Join(dir, "commands")
	if err := os.RemoveAll(pages); err != nil {
		return fmt.Errorf("remove old pages: %w", err)
	}
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return fmt.Errorf("write documentation: %w", err)
	}
	ofCommands, err := commandPages(root)
	if err != nil {
		return err
	}
	for name, page := range ofCommands {
		files[filepath.Join(pages, name)] = page
	}
	if err := os.MkdirAll(filepath.Join(root, frontEndDir), 0o755); err != nil {
		return fmt.Errorf("write front-end types: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return fmt.Errorf("write documentation: %w", err)
		}
	}
	return resultsFolder(dir, root).RemoveUnusedPictures(files)
}

// commandPages returns the pages of docs/commands by file name, as the programs print them.
func commandPages(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	var all []manual.Pages
	for _, name := range programs {
		cmd := exec.Command("go", "run", "./cmd/"+name, "pages")
		cmd.Dir, cmd.Stderr = root, os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("print pages of %s: %w", name, err)
		}
		var p manual.Pages
		if err := json.Unmarshal(text, &p); err != nil {
			return nil, fmt.Errorf("decode pages of %s: %w", name, err)
		}
		all = append(all, p)
		for page, text := range p.Pages {
			files[page] = []byte(text)
		}
	}
	files["README.md"] = []byte(manual.Index(all))
	return files, nil
}

func resultsFolder(dir, root string) results.Folder {
	return results.Folder{Dir: filepath.Join(dir, "results"), Root: root}
}

// Files returns all generated files except the pages of commands, by path.
func Files(dir, root string) (map[string][]byte, error) {
	files, err := renderTables(dir, root)
	if err != nil {
		return nil, err
	}
	for name, schema := range schemas {
		s, err := schema(root)
		if err != nil {
			return nil, err
		}
		data, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encode schema: %w", err)
		}
		files[filepath.Join(dir, name)] = append(data, '\n')
	}
	found, err := resultsFolder(dir, root).RenderFiles()
	if err != nil {
		return nil, err
	}
	maps.Copy(files, found)
	for _, a := range all.Registry() {
		files[filepath.Join(root, smokeDir, a.Name+".yaml")] = smokeExperiment(a)
	}
	types, err := TypeScript(root)
	if err != nil {
		return nil, err
	}
	for name, data := range types {
		files[filepath.Join(root, frontEndDir, name)] = data
	}
	return files, nil
}

func renderTables(dir, root string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for page, put := range map[string]func(page []byte) ([]byte, error){
		"events.md":    replaceEventTables,
		"databases.md": replaceTable(registry, func() string { return databaseTable(all.Registry()) }),
		"routing.md":   replaceTable(overlayOrigin, overlayTable),
		"assertions.md": func(page []byte) ([]byte, error) {
			page, err := replaceTable(metricOrigin, metricTable)(page)
			if err != nil {
				return nil, err
			}
			return replaceTable(operatorOrigin, operatorTable)(page)
		},
		"own-database.md":         replaceTable(registry, func() string { return protocolTable(all.Registry()) }),
		"experiment-reference.md": replaceReference(root),
	} {
		path := filepath.Join(dir, page)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read documentation page: %w", err)
		}
		if files[path], err = put(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}

const smokeWidth = 93

const smokeOrigin = "# Made by \"make docs\" from the registry in internal/database/all.\n"

func smokeExperiment(a database.About) []byte {
	var b strings.Builder
	b.WriteString("# yaml-language-server: $schema=../../docs/experiment.schema.json\n" + smokeOrigin + "#\n")
	for _, line := range wrapText(a.Smoke.Text, smokeWidth-len("# ")) {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	b.WriteString("#\n")
	if len(a.Recipes) > 0 {
		fmt.Fprintf(&b, "#   %s\n", installCommand(a))
	}
	subject := a.Name
	if a.Smoke.Options != "" {
		subject = fmt.Sprintf("{name: %s, options: %s}", a.Name, a.Smoke.Options)
	}
	fmt.Fprintf(&b, `#   skerry run experiments/smoke/%[1]s.yaml
name: smoke-%[1]s
topology: %[2]s
client: n1
database: %[3]s
workload: %[4]s
warmup: 2s
stop: {time: 10s}
`, a.Name, cmp.Or(a.Smoke.Topology, "mesh:3,rtt=5ms"), subject, cmp.Or(a.Smoke.Workload, "{name: a, records: 1000, threads: 8}"))
	return []byte(b.String())
}

func wrapText(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
