// Package health evaluates the health checks for Argo CD and Flux on DeadlineJobs in each state.
package health

import (
	"os"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

const folder = "../../manifests/health/"

type object = map[string]any

// job has a status with these conditions, each `Type=Status`.
func job(spec object, conditions ...string) object {
	var list []any
	for _, text := range conditions {
		kind, status, _ := strings.Cut(text, "=")
		list = append(list, object{"type": kind, "status": status, "reason": "Why" + kind, "message": "text"})
	}
	return object{"spec": spec, "status": object{"conditions": list}}
}

var cases = []struct {
	name string
	job  object
	// The status and a part of the message that Argo CD shows.
	argo, message string
	// What Flux finds: Current, Failed or InProgress.
	flux string
}{
	{"no status", object{"spec": object{}}, "Progressing", "not complete yet", "InProgress"},
	{"no conditions", object{"spec": object{}, "status": object{"ready": 1}}, "Progressing", "not complete yet", "InProgress"},
	{"running", job(object{}, "DeadlineFeasible=True"), "Progressing", "not complete yet", "InProgress"},
	{"complete", job(object{}, "SuccessCriteriaMet=True", "Complete=True", "DeadlineMissed=False"), "Healthy", "complete", "Current"},
	{"complete and late", job(object{}, "DeadlineMissed=True", "Complete=True"), "Healthy", "after its deadline", "Current"},
	{"failed", job(object{}, "FailureTarget=True", "Failed=True"), "Degraded", "WhyFailed: text", "Failed"},
	{"failing", job(object{}, "FailureTarget=True"), "Progressing", "not complete yet", "InProgress"},
	{"corrected", job(object{}, "Failed=False"), "Progressing", "not complete yet", "InProgress"},
	{"suspended", job(object{"suspend": true}, "Suspended=True"), "Suspended", "WhySuspended: text", "InProgress"},
	{"restored", job(object{}, "Suspended=True"), "Suspended", "WhySuspended: text", "InProgress"},
	{"suspended and not seen", object{"spec": object{"suspend": true}}, "Suspended", "spec.suspend", "InProgress"},
	{"resumed", job(object{"suspend": false}, "Suspended=False"), "Progressing", "not complete yet", "InProgress"},
	{"suspended and complete", job(object{"suspend": true}, "Suspended=True", "Complete=True"), "Healthy", "complete", "Current"},
	{"blocked", job(object{}, "DeadlineAtRisk=True", "AttemptsBlocked=True"), "Progressing", "WhyAttemptsBlocked", "InProgress"},
	{"at risk", job(object{}, "DeadlineAtRisk=True", "AttemptsBlocked=False"), "Progressing", "WhyDeadlineAtRisk", "InProgress"},
	{"late and running", job(object{}, "DeadlineMissed=True"), "Progressing", "WhyDeadlineMissed", "InProgress"},
}

func read(t *testing.T, name string) string {
	text, err := os.ReadFile(folder + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case object:
		table := state.NewTable()
		for key, part := range value {
			table.RawSetString(key, toLua(state, part))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, part := range value {
			table.Append(toLua(state, part))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int:
		return lua.LNumber(value)
	}
	panic("no such value in a test")
}

// Argo CD runs the script with the object as `obj`, without the libraries that reach the system.
func TestArgoCD(t *testing.T) {
	script := read(t, "argocd.lua")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			state := lua.NewState(lua.Options{SkipOpenLibs: true})
			defer state.Close()
			lua.OpenBase(state)
			state.SetGlobal("obj", toLua(state, c.job))
			if err := state.DoString(script); err != nil {
				t.Fatal(err)
			}
			health, ok := state.Get(-1).(*lua.LTable)
			if !ok {
				t.Fatalf("no table: %v", state.Get(-1))
			}
			status, message := health.RawGetString("status").String(), health.RawGetString("message").String()
			if status != c.argo || !strings.Contains(message, c.message) {
				t.Errorf("%s %q instead of %s %q", status, message, c.argo, c.message)
			}
		})
	}
}

// Flux evaluates `failed`, then `current`, with the fields of the object as variables. It waits while a field is
// missing.
func TestFlux(t *testing.T) {
	var file struct {
		Spec struct {
			HealthCheckExprs []struct{ Kind, Current, Failed string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "flux.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Spec.HealthCheckExprs) != 1 || file.Spec.HealthCheckExprs[0].Kind != "DeadlineJob" {
		t.Fatalf("no check of a DeadlineJob: %+v", file)
	}
	check := file.Spec.HealthCheckExprs[0]
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("spec", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	holds := func(t *testing.T, expression string, job object) bool {
		checked, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(checked)
		if err != nil {
			t.Fatal(err)
		}
		result, _, err := program.Eval(job)
		return err == nil && result.Value() == true
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found := "InProgress"
			if holds(t, check.Failed, c.job) {
				found = "Failed"
			} else if holds(t, check.Current, c.job) {
				found = "Current"
			}
			if found != c.flux {
				t.Errorf("%s instead of %s", found, c.flux)
			}
		})
	}
}
