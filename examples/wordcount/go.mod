module shed.dev/examples/wordcount

go 1.24
