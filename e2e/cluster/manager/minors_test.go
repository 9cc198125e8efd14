package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestMinorIsFoundByVersionTagOrMinor(t *testing.T) {
	for _, name := range []string{"1.37.2", "v1.37.2", "1.37"} {
		if m, err := findMinor(name); err != nil || m.version != "1.37.2" {
			t.Errorf("findMinor(%q) = %q, %v", name, m.version, err)
		}
	}
}

func TestUnlistedMinorIsRefusedWithTheList(t *testing.T) {
	for _, name := range []string{"1.31.0", "1.37.9", "1.3", "", "newest"} {
		_, err := findMinor(name)
		var usage usageError
		if !errors.As(err, &usage) {
			t.Fatalf("findMinor(%q) = %v, not a usage error", name, err)
		}
		for _, m := range minors {
			if !strings.Contains(err.Error(), m.version) {
				t.Errorf("%q does not name %s", err, m.version)
			}
		}
	}
}

func TestEveryMinorHasItsModules(t *testing.T) {
	t.Setenv("SHED_CLUSTER_DIR", "..")
	folders := map[string]bool{}
	for _, m := range minors {
		for _, p := range []program{kubeProgram, jobsProgram} {
			text, err := os.ReadFile(filepath.Join("..", p.name, m.version, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			if want := "\t" + kubernetesModule + " " + m.tag() + "\n"; !strings.Contains(string(text), want) {
				t.Errorf("%s/%s does not require %q", p.name, m.version, want)
			}
			folder, err := p.folder(m)
			if err != nil || folders[folder] {
				t.Errorf("%s of %s: cache folder %q, %v", p.name, m.version, folder, err)
			}
			folders[folder] = true
		}
	}
	found, err := filepath.Glob("../*/1.*")
	if err != nil || len(found) != 2*len(minors) {
		t.Errorf("folders of minors: %q, %v", found, err)
	}
}

func TestBuildConstraintsNameListedMinors(t *testing.T) {
	tags := map[string]bool{}
	for _, m := range minors {
		tags[m.buildTag()] = true
	}
	sources, err := filepath.Glob("../kube/*.go")
	if err != nil || len(sources) < 2 {
		t.Fatal(sources, err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, tag := range regexp.MustCompile(`kubernetes_\d+_\d+`).FindAllString(string(text), -1) {
			if !tags[tag] {
				t.Errorf("%s: no minor has the tag %s", source, tag)
			}
		}
	}
}

const kubernetesGoMod = `{
	"Go": "1.26.0",
	"Godebug": [{"Key": "default", "Value": "go1.26"}],
	"Require": [
		{"Path": "github.com/onsi/ginkgo/v2", "Version": "v2.32.0"},
		{"Path": "github.com/onsi/gomega", "Version": "v1.40.0"},
		{"Path": "k8s.io/api", "Version": "v0.0.0"}
	],
	"Replace": [{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}}]
}`

func TestDraftTakesVersionsFromKubernetes(t *testing.T) {
	var kubernetes goMod
	if err := json.Unmarshal([]byte(kubernetesGoMod), &kubernetes); err != nil {
		t.Fatal(err)
	}
	newest, err := findMinor("1.37")
	if err != nil {
		t.Fatal(err)
	}
	text, err := jobsProgram.draft(newest, kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"module shed.dev/e2e/cluster/jobs", "go 1.26.0", "godebug default=go1.26",
		"\tgithub.com/onsi/ginkgo/v2 v2.32.0", "\tk8s.io/kubernetes v1.37.2",
		"\tk8s.io/api => k8s.io/api v0.37.2",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	if _, err := kubeProgram.draft(newest, kubernetes); err == nil {
		t.Error("a module that Kubernetes does not require has no version, and is not refused")
	}
	kubernetes.Replace[0].New.Path = "github.com/elsewhere/api"
	if _, err := jobsProgram.draft(newest, kubernetes); err == nil {
		t.Error("a replacement from outside the staging folder is not refused")
	}
}

func TestClusterKeepsItsMinor(t *testing.T) {
	state := t.TempDir()
	made := newConfig(state)
	made.Version, made.Mode, made.Count = "1.36.3", modeKwok, 10
	if err := made.save(); err != nil {
		t.Fatal(err)
	}
	c, err := loadConfig(state)
	if err != nil || c.minor.version != "1.36.3" {
		t.Fatalf("loaded %q, %v", c.minor.version, err)
	}
	for version, refused := range map[string]bool{"": false, "1.36": false, "1.36.3": false, "1.34.4": true} {
		t.Setenv(versionVariable, version)
		options, err := parseUp(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.sameAs(options); (err != nil) != refused {
			t.Errorf("%s=%s: %v", versionVariable, version, err)
		}
	}
}
