# fish completion for runlens: runlens completion fish

# Without words it fails, and fish completes the names of files.
function __runlens_find_words
    set -l line (commandline -opc) (commandline -ct | string replace -r '^["\']' '')
    set -l answer (runlens __complete $line[2..-1] 2>/dev/null)
    set -g __runlens_words $answer[2..-1]
    test "$answer[1]" != files
end

complete -c runlens -n __runlens_find_words -f -a '$__runlens_words'
