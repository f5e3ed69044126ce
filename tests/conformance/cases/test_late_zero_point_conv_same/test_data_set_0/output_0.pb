JxNûõÃr×õBÖäºC(Ñ¹ÂÑõÃ’Ð(ÃzXÃ+¬ ÃKrBÁ’Ãýö5B
í7Âƒ8ŒA¦„^ÂýÃoÃ\‹,CÂCKeÃ†b­ÂFöBf{¨CˆNC‹kODŸX¸B/ÃaÍÃV‚CÁ¤BADe‡C