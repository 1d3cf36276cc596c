package slurm

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/run/executor"
)

func batch(dir string) executor.Batch {
	return executor.Batch{
		Run: "quickstart", Dir: dir, Number: 1, File: dir + "/engine/1.tasks", Tasks: []executor.Task{
			{ID: 4, Trials: []int{9}}, {ID: 7, Trials: []int{1, 2}},
		},
		ExpectedTime: 40 * time.Second, Token: "TOKEN", Exe: "/opt/skerry", Cwd: "/home/a b",
	}
}

func printed(t *testing.T, e *Executor, b executor.Batch) string {
	t.Helper()
	var w strings.Builder
	if _, err := e.Print(&w, b); err != nil {
		t.Fatal(err)
	}
	return w.String()
}

func cluster(t *testing.T, results, partition string, options ...string) *Executor {
	t.Helper()
	e, err := New(partition, options, results, home{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

type home struct{}

func (home) PackPlan([]int) ([]byte, error)           { return []byte("plan"), nil }
func (home) ReceiveResults(io.Reader) (string, error) { return "", nil }

func TestScript(t *testing.T) {
	b := batch("/share/it's")
	b.Rerun, b.StateDir, b.MemoryBytes = true, "/state", 4<<30
	b.Exclude = []string{"node3", "node7"}
	want := `#!/bin/bash
#SBATCH --job-name=skerry-quickstart-token-1
#SBATCH --array=1-2
#SBATCH --output=/share/it's/engine/slurm-%A_%a.out
#SBATCH --open-mode=append
#SBATCH --chdir="/home/a b"
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --mem=7168M
#SBATCH --requeue
#SBATCH --time=12
#SBATCH --exclude=node3,node7
#SBATCH --partition=lab
#SBATCH --account=x
export SKERRY_TASK="slurm $SLURM_JOB_ID on $(hostname)"
if [ "$(cat '/share/it'\''s/engine/token' 2>/dev/null)" != TOKEN ]; then
	echo "skerry: $(hostname) does not see the run directory "'/share/it'\''s' >&2
	exit 77
fi
exec '/opt/skerry' --state-dir '/state' run --resume '/share/it'\''s' --suspect --only "@"'/share/it'\''s/engine/1.tasks'":$SLURM_ARRAY_TASK_ID"
`
	if diff := cmp.Diff(want, printed(t, cluster(t, "", "lab", "--account=x"), b)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := cluster(t, "", "", "--a\n--b").Print(&strings.Builder{}, b); err == nil {
		t.Error("a multi-line option was accepted")
	}
}

// The script runs its own line, and nothing if the directory is another one.
func TestScriptRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's $(shared)")
	if err := os.MkdirAll(filepath.Join(dir, executor.Folder), 0o755); err != nil {
		t.Fatal(err)
	}
	b := batch(dir)
	b.Exe = "/bin/echo"
	run := func() (string, int) {
		cmd := exec.Command("bash", "-c", printed(t, cluster(t, "", ""), b))
		cmd.Env = append(os.Environ(), "SLURM_ARRAY_TASK_ID=2")
		out, _ := cmd.Output()
		return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
	}
	if out, code := run(); code != executor.ExitNotShared || out != "" {
		t.Errorf("without a token: %q, exit %d", out, code)
	}
	if err := os.WriteFile(filepath.Join(dir, executor.TokenFile), []byte("TOKEN\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := run(); code != 0 || out != "run --resume "+dir+" --only @"+b.File+":2" {
		t.Errorf("%q, exit %d", out, code)
	}
}

// Without a shared directory, the script contains the plan and keeps the output of its task until it is fetched.
func TestScriptWithoutASharedDirectory(t *testing.T) {
	bin, b := t.TempDir(), batch("/nowhere")
	for name, text := range map[string]string{
		"scontrol": "[ \"$3\" = 'Comment=skerry measures' ] || echo \"${3#Comment=skerry ready }\" >$0.ready",
		"skerry":   "cat \"$4\"; echo \" $*\"; exit 3",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.Exe = filepath.Join(bin, "skerry")
	cmd := exec.Command("bash", "-c", printed(t, cluster(t, "output", ""), b))
	cmd.Env = append(os.Environ(), "SLURM_ARRAY_TASK_ID=2", "SLURM_JOB_ID=9", "PATH="+bin+":"+os.Getenv("PATH"), "TMPDIR="+bin)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var file []byte
	for len(file) == 0 {
		file, _ = os.ReadFile(filepath.Join(bin, "scontrol.ready")) // not there yet
		time.Sleep(10 * time.Millisecond)
	}
	out := strings.TrimSpace(string(file))
	said, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(said), "plan agent task --plan ") || !strings.HasSuffix(string(said), " --only 1,2\n") {
		t.Errorf("%q (%v)", said, err)
	}
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("the script ended with %v, want its task's code", err)
	}
	if _, err := os.Stat(filepath.Dir(out)); err == nil {
		t.Error("the script did not remove its folder")
	}
}

func TestStates(t *testing.T) {
	for slurm, want := range map[string]executor.State{
		"PENDING": executor.Waiting, "RUNNING": executor.Running, "COMPLETING": executor.Running, "COMPLETED": executor.Ended,
		"FAILED":        executor.Failed,
		"OUT_OF_MEMORY": executor.Failed, "CANCELLED": executor.Cancelled, "PREEMPTED": executor.Preempted, "TIMEOUT": executor.TimedOut,
		"NODE_FAIL": executor.Lost,
	} {
		if got := parseState(slurm); got != want {
			t.Errorf("%s is %s, want %s", slurm, got, want)
		}
	}
}

func TestSetting(t *testing.T) {
	config := []byte("Configuration data as of 2026\nMaxArraySize            = 1001\nMaxJobCount             = 200\nSelectType = x\n")
	if a, b, c := parseSetting(
		config, "MaxArraySize", 1,
	), parseSetting(config, "MaxJobCount", 1), parseSetting(config, "SelectType", 9); a != 1001 || b != 200 || c != 9 {
		t.Errorf("%d, %d, %d", a, b, c)
	}
}

// Variables of an outer job, and a user's options for every sbatch, do not override a job's options.
func TestEnvironmentOfClients(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"sbatch", "squeue", "scancel", "scontrol"} {
		text := "#!/bin/sh\nenv >" + bin + "/$(basename $0).env\nfor a; do echo \"$a\"; done >" + bin + "/$(basename $0).args\necho 7\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for name, value := range map[string]string{
		"SBATCH_TIMELIMIT": "1", "SBATCH_WAIT": "1", "SLURM_JOB_ID": "3", "SLURM_MEM_PER_CPU": "100", "SLURM_BITSTR_LEN": "9",
		"SLURMD_NODENAME":  "n",
		"SQUEUE_PARTITION": "other", "SCANCEL_USER": "other", "SCONTROL_FUTURE": "1", "SALLOC_TIMELIMIT": "1", "SRUN_CPUS_PER_TASK": "2",
		"SLURM_CONF": "/etc/own.conf", "SLURM_CLUSTERS": "far", "SLURM_JWT": "token", "SBATCH_ACCOUNT": "physics", "SBATCH_PARTITION": "long",
		"SCRATCH": "/scratch",
	} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	b := batch(filepath.Join(dir, "it's"))
	if err := os.MkdirAll(filepath.Join(b.Dir, executor.Folder), 0o755); err != nil {
		t.Fatal(err)
	}
	e := cluster(t, "", "lab", "--account=x", "--gres gpu:1 --comment='a \"b\" c'")
	limits, err := e.Check(t.Context())
	if err != nil || limits.Warning == nil || !strings.Contains(
		limits.Warning.Error(), "ignore SBATCH_TIMELIMIT, SBATCH_WAIT of the environment",
	) {
		t.Errorf("%v, %v", limits.Warning, err)
	}
	if _, err := e.Submit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Poll(t.Context(), []executor.Submission{b.Submission("7", 2)}); err != nil {
		t.Fatal(err)
	}
	if err := e.Cancel(t.Context(), []executor.Submission{b.Submission("7", 2)}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"SBATCH_ACCOUNT=physics", "SBATCH_PARTITION=long", "SLURM_BITSTR_LEN=0", "SLURM_CLUSTERS=far",
		"SLURM_CONF=/etc/own.conf", "SLURM_JWT=token",
	}
	for _, client := range []string{"sbatch", "squeue", "scancel", "scontrol"} {
		text, err := os.ReadFile(filepath.Join(bin, client+".env"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(text)) {
			if name, _, _ := strings.Cut(line, "_"); strings.HasPrefix(name, "S") && slices.Contains(droppedPrefixes, name+"_") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(string(text), "SCRATCH=/scratch\n") {
			t.Errorf("%s: -want +got:\n%s", client, diff)
		}
	}
	args, err := os.ReadFile(filepath.Join(bin, "sbatch.args"))
	if err != nil {
		t.Fatal(err)
	}
	wantArgs := []string{"--parsable", "--job-name=skerry-quickstart-token-1", "--array=1-2", "--output=" + b.Dir +
		"/engine/slurm-%A_%a.out", "--open-mode=append",
		"--chdir=/home/a b", "--nodes=1", "--ntasks=1", "--exclusive", "--mem=0", "--requeue", "--time=12", "--partition=lab",
		"--account=x", "--gres", "gpu:1", `--comment=a "b" c`, b.Path(".sbatch")}
	if diff := cmp.Diff(wantArgs, strings.Split(strings.TrimSpace(string(args)), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWords(t *testing.T) {
	for option, want := range map[string][]string{
		"--account=x":            {"--account=x"},
		"  --gres  gpu:1 ":       {"--gres", "gpu:1"},
		`--comment="a b"`:        {"--comment=a b"},
		`--comment='a "b"' -n 1`: {`--comment=a "b"`, "-n", "1"},
		`--comment=a\ b`:         {"--comment=a b"},
		`--comment ""`:           {"--comment", ""},
		"":                       nil,
	} {
		if got, err := splitOption(option); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%q: %q, %v", option, got, err)
		}
	}
	if _, err := splitOption(`--comment="a`); err == nil {
		t.Error("a quote without its end was accepted")
	}
}
