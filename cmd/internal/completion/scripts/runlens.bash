# bash completion for runlens: runlens completion bash

_runlens() {
    # Bash separates words at = : and @ too. Here a word goes on until a space, and the last one ends at the cursor.
    local line=${COMP_LINE:0:COMP_POINT} part words=()
    for part in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#words[@]} -eq 0 || $line == [[:space:]]* ]]; then
            line=${line#"${line%%[![:space:]]*}"}
            words+=("")
        fi
        part=${line:0:${#part}}
        line=${line:${#part}}
        words[${#words[@]}-1]+=$part
    done
    words=("${words[@]//[\"\'\\]/}")

    local answer word descriptions=() tab=$'\t' longest=0 i
    answer=$(runlens __complete "${words[@]:1}" 2>/dev/null)
    if [[ $answer == files ]]; then
        compopt -o default 2>/dev/null
        return
    fi
    [[ $answer == *$'\n'* ]] || return
    # Bash replaces its own word, $2, which may be the end of ours.
    local before=${words[${#words[@]}-1]%"$2"}
    while IFS= read -r word; do
        [[ $word == *"$tab"* ]] || word+=$tab
        descriptions+=("${word#*"$tab"}")
        word=${word%%"$tab"*}
        word=${word#"$before"}
        COMPREPLY+=("$word")
        ((${#word} > longest)) && longest=${#word}
    done <<<"${answer#*$'\n'}"

    if [[ ${#COMPREPLY[@]} -eq 1 ]]; then
        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    elif [[ $COMP_TYPE =~ ^(63|33|64)$ ]]; then
        # Bash only lists the words, and inserts none.
        for i in "${!COMPREPLY[@]}"; do
            printf -v line '%-*s  %s' "$longest" "${COMPREPLY[i]}" "${descriptions[i]}"
            COMPREPLY[i]=${line:0:${COLUMNS:-80}-1}
        done
    fi
}

complete -F _runlens runlens
