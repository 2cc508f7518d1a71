#compdef runlens
# zsh completion for runlens: runlens completion zsh

_runlens() {
    local -a answer names shown
    local line
    answer=("${(@f)$(runlens __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    if [[ ${answer[1]} == files ]]; then
        compset -P '-*='
        _files
        return
    fi
    for line in "${(@)answer[2,-1]}"; do
        names+=("${line%%$'\t'*}")
        shown+=("${${line/$'\t'/  }[1,COLUMNS-1]}")
    done
    if [[ ${names[1]} == *= ]]; then
        compadd -l -S '' -d shown -a names
    else
        compadd -l -d shown -a names
    fi
}

if [[ ${funcstack[1]} == _runlens ]]; then
    _runlens
else
    compdef _runlens runlens
fi
