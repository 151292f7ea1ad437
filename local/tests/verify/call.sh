if verify "$@"; then echo accepted; else echo refused; fi
