package slurm

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// prefixes are those of variables that Slurm's clients read as options, or that Slurm sets within a job. For sbatch they win
// over the options of the script; squeue and scancel look at fewer jobs by them (INPUT ENVIRONMENT VARIABLES in the manual
// of each client).
var prefixes = []string{"SBATCH_", "SLURM_", "SLURMD_", "SQUEUE_", "SCANCEL_", "SCONTROL_", "SALLOC_", "SRUN_"}

// kept are those that lead the clients to the cluster, and a user's choice of who pays and where jobs go. Options of the
// command line win over the latter.
var kept = []string{
	"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_SACK_SOCKET",
	"SBATCH_ACCOUNT", "SBATCH_PARTITION", "SBATCH_QOS", "SBATCH_RESERVATION", "SBATCH_WCKEY",
}

// dropped tells whether the clients run without a variable: what an outer job left, or options of other jobs.
func dropped(name string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) && !slices.Contains(kept, name)
}

// ignored reports options that a user set for every sbatch and that jobs of Skerry do not have; nil without any.
func ignored() error {
	var names []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "SBATCH_") && dropped(name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("jobs are submitted without %s of the environment; give what they need with --sbatch", strings.Join(names, ", "))
}

// words splits an option as sbatch splits a line of a script: at blanks, outside of quotes.
func words(option string) (list []string, err error) {
	var word strings.Builder
	quote, begun, escaped := rune(0), false, false
	for _, c := range option {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if begun {
				list = append(list, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("the option %s of sbatch has a quote without its end", option)
	}
	if begun {
		list = append(list, word.String())
	}
	return list, nil
}
