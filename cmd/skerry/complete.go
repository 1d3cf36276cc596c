package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skerry/docs"
	"skerry/internal/database/all"
	"skerry/internal/install"
)

// completeRecipes completes the names of recipes.
func completeRecipes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return install.Names(recipes(), func(install.Recipe) bool { return true }), cobra.ShellCompDirectiveNoFileComp
}

// completeSets completes paths of an experiment, and databases after database=.
func completeSets(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	out := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	for _, path := range []string{"database=", "database.name="} {
		if strings.HasPrefix(word, path) {
			return prefixed(path, databaseNames(), ""), out
		}
	}
	return prefixed("", settable(), "="), out
}

// completeFrom completes databases for --from.
func completeFrom(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return prefixed("", databaseNames(), "="), cobra.ShellCompDirectiveNoSpace
}

func databaseNames() []string { return slices.Sorted(maps.Keys(all.Databases())) }

func prefixed(before string, words []string, after string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = before + w + after
	}
	return out
}

// schemaNode is the part of a JSON Schema that completion reads.
type schemaNode struct {
	Ref        string                `json:"$ref"`
	Defs       map[string]schemaNode `json:"$defs"`
	Properties map[string]schemaNode `json:"properties"`
	OneOf      []schemaNode          `json:"oneOf"`
	AnyOf      []schemaNode          `json:"anyOf"`
}

// deepest is the maximum number of keys in a path. Deeper keys are options of single databases.
const deepest = 3

// settable returns the paths that --set accepts, from the schema of experiments.
func settable() []string {
	var root schemaNode
	if err := json.Unmarshal(docs.ExperimentSchema, &root); err != nil { // covered by a test
		return nil
	}
	found := map[string]bool{}
	var walk func(n schemaNode, path []string)
	walk = func(n schemaNode, path []string) {
		if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok {
			n = root.Defs[name]
		}
		for _, part := range slices.Concat(n.OneOf, n.AnyOf) {
			walk(part, path)
		}
		for key, next := range n.Properties {
			if at := append(slices.Clone(path), key); len(at) <= deepest {
				found[strings.Join(at, ".")] = true
				walk(next, at)
			}
		}
	}
	walk(root, nil)
	return slices.Sorted(maps.Keys(found))
}
