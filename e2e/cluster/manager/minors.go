package main

import (
	"os"
	"strings"
)

// versionVariable names the environment variable that chooses the minor.
const versionVariable = "SHED_KUBERNETES"

// defaultVersion is the minor that is started when the variable is not set.
const defaultVersion = "1.37.2"

// minor is one Kubernetes version that this program builds and starts. What
// differs between minors stands here and in the modules that `cluster modules`
// generates (kube/VERSION, jobs/VERSION); everything else is shared.
type minor struct {
	version string // without the v
	// Tags of the images that its own end-to-end suite uses, from its
	// test/utils/image/manifest.go.
	busybox, pause string
}

var minors = []minor{
	{version: "1.33.13", busybox: "1.36.1-1", pause: "3.10"},
	{version: "1.34.4", busybox: "1.37.0-1", pause: "3.10.1"},
	{version: "1.35.4", busybox: "1.37.0-1", pause: "3.10.1"},
	{version: "1.36.3", busybox: "1.37.0-1", pause: "3.10.2"},
	{version: "1.37.2", busybox: "1.37.0-2", pause: "3.10.2"},
}

// staging is the version of the modules that Kubernetes publishes apart from
// its own: client-go of 1.37.2 is v0.37.2.
func (m minor) staging() string { return "v0" + strings.TrimPrefix(m.version, "1") }

// tag is the version as Kubernetes writes it.
func (m minor) tag() string { return "v" + m.version }

// buildTag marks source files that only this minor needs, such as kubernetes_1_33.
func (m minor) buildTag() string {
	number := strings.Split(m.version, ".")
	return "kubernetes_" + number[0] + "_" + number[1]
}

// findMinor accepts 1.37.2, v1.37.2 and 1.37.
func findMinor(version string) (minor, error) {
	wanted := strings.TrimPrefix(version, "v")
	for _, m := range minors {
		if wanted == m.version || wanted == m.version[:strings.LastIndex(m.version, ".")] {
			return m, nil
		}
	}
	return minor{}, usagef("Kubernetes %s is not supported: set %s to %s", version, versionVariable, supportedVersions())
}

// supportedVersions is a list for messages.
func supportedVersions() string {
	var names []string
	for _, m := range minors {
		name := m.version
		if name == defaultVersion {
			name += " (the default)"
		}
		names = append(names, name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// requestedMinor is the minor that the environment asks for, and whether it
// asks for one at all.
func requestedMinor() (minor, bool, error) {
	version := os.Getenv(versionVariable)
	given := version != ""
	if !given {
		version = defaultVersion
	}
	m, err := findMinor(version)
	return m, given, err
}
