package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	busyboxPath  = "/bin/busybox"
	busyboxImage = "localhost/busybox:test"
)

func (m minor) pauseImage() string { return "registry.k8s.io/pause:" + m.pause }

// upstreamBusybox is the name under which upstream's own end-to-end tests ask for busybox.
func (m minor) upstreamBusybox() string {
	return "registry.k8s.io/e2e-test-images/busybox:" + m.busybox
}

// layerFile is one entry of an image's only layer.
type layerFile struct {
	name    string
	mode    int64
	content []byte
	link    string
	folder  bool
}

// imageSpec is what this program needs to say about an image.
type imageSpec struct {
	tags       []string
	entrypoint []string
	command    []string
	files      []layerFile
}

// baseImages builds the two images every node starts with and returns the
// paths of their archives.
func baseImages(m minor) ([]string, error) {
	source, err := sourceFolder()
	if err != nil {
		return nil, err
	}
	code, err := os.ReadFile(filepath.Join(source, "pause", "pause.go"))
	if err != nil {
		return nil, err
	}
	busybox, err := os.ReadFile(busyboxPath)
	if err != nil {
		return nil, err
	}
	names := []byte(m.pauseImage() + "\n" + m.upstreamBusybox() + "\n")
	sum := sha256.Sum256(slices.Concat(names, code, busybox))
	folder := filepath.Join(cacheFolder(), "images-"+hex.EncodeToString(sum[:6]))
	pauseTar, busyboxTar := filepath.Join(folder, "pause.tar"), filepath.Join(folder, "busybox.tar")
	archives := []string{pauseTar, busyboxTar}
	if fileExists(pauseTar) && fileExists(busyboxTar) {
		return archives, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := writePauseImage(source, pauseTar, m.pauseImage()); err != nil {
		return nil, err
	}
	return archives, writeBusyboxImage(busybox, busyboxTar, m.upstreamBusybox())
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func writePauseImage(source, archive, tag string) error {
	binary := fmt.Sprintf("%s.%d.bin", archive, os.Getpid())
	defer os.Remove(binary)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "pause.go")
	cmd.Dir = filepath.Join(source, "pause")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off")
	if _, err := outputOf(cmd); err != nil {
		return fmt.Errorf("build the pause program: %w", err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	return writeImage(archive, imageSpec{
		tags:       []string{tag},
		entrypoint: []string{"/pause"},
		files:      []layerFile{{name: "pause", mode: 0o755, content: content}},
	})
}

func writeBusyboxImage(busybox []byte, archive, upstreamTag string) error {
	if !isStatic(busyboxPath) {
		return fmt.Errorf("%s needs the C library, which the image has not: apt-get install -y busybox-static", busyboxPath)
	}
	applets, err := output(busyboxPath, "--list")
	if err != nil {
		return err
	}
	files := []layerFile{
		{name: "bin/", mode: 0o755, folder: true},
		{name: "tmp/", mode: 0o1777, folder: true},
		{name: "root/", mode: 0o700, folder: true},
		{name: "etc/", mode: 0o755, folder: true},
		{name: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n")},
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnogroup:x:65534:\n")},
		{name: "bin/busybox", mode: 0o755, content: busybox},
	}
	for _, applet := range strings.Fields(applets) {
		if applet != "busybox" {
			files = append(files, layerFile{name: "bin/" + applet, mode: 0o777, link: "busybox"})
		}
	}
	return writeImage(archive, imageSpec{
		tags:    []string{busyboxImage, upstreamTag},
		command: []string{"sh"},
		files:   files,
	})
}

// isStatic tells whether a program runs without a dynamic loader.
func isStatic(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}

// writeImage writes a docker archive: a layer, a configuration and a manifest
// in one tar. All times are zero, so equal content gives an equal image.
func writeImage(archive string, spec imageSpec) error {
	layer, err := packLayer(spec.files)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(layer)
	configuration, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config": map[string]any{
			"Env":        []string{"PATH=/bin"},
			"Entrypoint": spec.entrypoint,
			"Cmd":        spec.command,
			"WorkingDir": "/",
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(digest[:])}},
	})
	if err != nil {
		return err
	}
	configName := sha256.Sum256(configuration)
	config := hex.EncodeToString(configName[:]) + ".json"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": config, "RepoTags": spec.tags, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return err
	}
	content, err := packLayer([]layerFile{
		{name: "manifest.json", mode: 0o644, content: manifest},
		{name: config, mode: 0o644, content: configuration},
		{name: "layer.tar", mode: 0o644, content: layer},
	})
	if err != nil {
		return err
	}
	return writeFile(archive, content, 0o644)
}

func packLayer(files []layerFile) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, file := range files {
		header := &tar.Header{
			Name: file.name, Mode: file.mode, Size: int64(len(file.content)),
			ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Linkname: file.link,
		}
		if file.folder {
			header.Typeflag = tar.TypeDir
		} else if file.link != "" {
			header.Typeflag = tar.TypeSymlink
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(file.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
