# Whether fish completes commands and options: fish complete.fish
for pair in "millstream host doc=doctor" "millstream demo --tim=--time-scale"
    set line (string split = $pair)[1]
    set wanted (string split = $pair)[2]
    set said (complete -C $line)
    echo "$line: $said"
    string match -q -- "$wanted*" $said; or exit 1
end
