package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
)

// Output is the name of the output that holds entries of a machines file.
const Output = "machines"

// ErrOutputs is returned if the outputs contain no machines.
var ErrOutputs = errors.New("the outputs contain no machines")

// makers are the programs that can read outputs. The first installed one is used.
var makers = []string{"tofu", "terraform"}

// FromTofu returns the machines from the outputs named Output of OpenTofu or Terraform configurations. It changes nothing.
// It returns ErrOutputs without machines, and strict.Problems for invalid ones.
func FromTofu(ctx context.Context, dirs []string) (File, error) {
	var f File
	for _, dir := range dirs {
		m, err := fromResources(ctx, dir)
		if err != nil {
			return File{}, fmt.Errorf("reading the outputs of %s: %w", dir, err)
		}
		f.Machines = append(f.Machines, m...)
	}
	if ps := f.check("machines"); len(ps) > 0 {
		return File{}, advice.With(fmt.Errorf("the machines of %s together: %w", strings.Join(dirs, ", "), ps), "give each module another value of the variable name, the prefix of its machines' names")
	}
	return f, nil
}

func fromResources(ctx context.Context, dir string) ([]Entry, error) {
	printed, maker, err := outputs(ctx, dir)
	if err != nil {
		return nil, err
	}
	var all map[string]struct{ Value any }
	if err := json.Unmarshal(printed, &all); err != nil {
		return nil, fmt.Errorf("output of %s is not JSON: %w", maker, err)
	}
	out, ok := all[Output]
	switch list, isList := out.Value.([]any); {
	case len(all) == 0:
		return nil, advice.With(fmt.Errorf("%w: no outputs: nothing is applied, or everything is destroyed", ErrOutputs), "create the machines: %s -chdir=%s apply", maker, dir)
	case !ok:
		return nil, advice.With(fmt.Errorf("%w: outputs are %s, but no output is called %s", ErrOutputs, strings.Join(slices.Sorted(maps.Keys(all)), ", "), Output),
			"add: output %q { value = module.NAME.machines }, and apply again", Output)
	case isList && len(list) == 0:
		return nil, fmt.Errorf("%w: %s is empty", ErrOutputs, Output)
	}
	text, err := json.Marshal(map[string]any{"machines": given(out.Value)})
	if err != nil {
		return nil, err
	}
	root, err := strict.ParseValue(fmt.Sprintf("output %q", Output), string(text))
	if err != nil {
		return nil, err
	}
	f, err := decode(root)
	if err != nil {
		return nil, advice.With(err, "modules whose output is right are in deploy/tofu (docs/howto/real-clouds.md)")
	}
	return f.Machines, nil
}

// outputs returns the outputs as JSON, and the program that printed them.
func outputs(ctx context.Context, dir string) (text []byte, maker string, err error) {
	if st, err := os.Stat(dir); err != nil {
		return nil, "", err
	} else if !st.IsDir() {
		return nil, "", errors.New("not a directory")
	}
	for _, maker := range makers {
		path, err := exec.LookPath(maker)
		if errors.Is(err, exec.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		cmd := exec.CommandContext(ctx, path, "output", "-json", "-no-color")
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, "", advice.With(fmt.Errorf("%s: %w: %s", maker, err, strings.TrimSpace(stderr.String())), "try: %s -chdir=%s output", maker, dir)
		}
		return text, maker, nil
	}
	return nil, "", advice.With(fmt.Errorf("neither %s is in PATH", strings.Join(makers, " nor ")), "install OpenTofu (https://opentofu.org/docs/intro/install) if it created the machines")
}

// given removes unset attributes: objects of an OpenTofu list have all attributes, with null for unset ones.
func given(v any) any {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, x any) bool { return x == nil })
		for k, x := range v {
			v[k] = given(x)
		}
	case []any:
		for i, x := range v {
			v[i] = given(x)
		}
	}
	return v
}
