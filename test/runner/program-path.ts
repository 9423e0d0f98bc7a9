// Debian has nginx in /usr/sbin, which is not on the path of its ordinary users. A program there counts as installed, for this
// process and those that it starts.

process.env.PATH = `${process.env.PATH}:/usr/local/sbin:/usr/sbin`
