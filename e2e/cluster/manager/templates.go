package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"text/template"
)

//go:embed templates/kubeconfig.yaml
var kubeconfigText string

//go:embed templates/kubelet.yaml
var kubeletText string

//go:embed templates/kube-proxy.yaml
var kubeProxyText string

//go:embed templates/containerd.toml
var containerdText string

//go:embed templates/cni.json
var cniText string

//go:embed templates/audit-policy.yaml
var auditPolicyText string

// render fills in a template of this program; a mistake in one is a bug that
// the first `up` shows, hence the panic.
func render(text string, data any) []byte {
	encode := template.FuncMap{"base64": base64.StdEncoding.EncodeToString}
	parsed := template.Must(template.New("").Funcs(encode).Option("missingkey=error").Parse(text))
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		panic(err)
	}
	return out.Bytes()
}
