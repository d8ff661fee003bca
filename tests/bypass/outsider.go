// The same as outsider.c, in Go: raw system calls, even where the library is preloaded.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
)

func act(what, path string) error {
	if what == "stdout" {
		_, err := os.Stdout.Write(junk)
		return err
	}
	flags := os.O_RDWR
	switch what {
	case "read":
		flags = os.O_RDONLY
	case "append":
		flags |= os.O_APPEND
	case "empty":
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	switch what {
	case "read":
		start := make([]byte, 24)
		_, err = file.Read(start)
		fmt.Println(string(start))
	case "truncate":
		err = file.Truncate(100)
	case "grow":
		err = file.Truncate(1 << 24)
	case "empty":
	case "punch":
		err = syscall.Fallocate(int(file.Fd()), 3, 0, 4096)
	case "map":
		var mapped []byte
		mapped, err = syscall.Mmap(int(file.Fd()), 0, len(junk), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		copy(mapped, junk)
	default:
		_, err = file.Write(junk)
	}
	return err
}

var junk = bytes.Repeat([]byte("x"), 4096)

func main() {
	if err := act(os.Args[1], os.Args[2]); err != nil {
		var number syscall.Errno
		if errors.As(err, &number) && number == syscall.EBADF {
			fmt.Fprintln(os.Stderr, "EBADF")
		} else {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
}
